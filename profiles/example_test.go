package profiles_test

import (
	"fmt"

	"github.com/sandbox-exec/sandbox-exec/profiles"
)

func ExampleLoad() {
	p, err := profiles.Load("workspace")
	if err != nil {
		fmt.Println(err)
		return
	}
	p.Read = append(p.Read, "~/.npmrc") // the person's own grant
	fmt.Println(p.Name, p.Mode, p.Workspace, p.Network)
	// Output: workspace allow read-write off
}

func ExampleParse() {
	_, err := profiles.Parse("mine.toml", []byte("mode = \"plan\"\nnetwrok = \"off\"\n"))
	fmt.Println(err)
	// Output: mine.toml:2:1: unknown key "netwrok"
}
