package selftest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// What an attempt prints, for outside.
const (
	tried    = "attempt: tried"
	through  = "attempt: got through"
	refused  = "attempt: refused: "
	staying  = "attempt: stays"
	diary    = "keep me\n"
	lifetime = 20 * time.Second // of what should not outlive; a bound, should it
	world    = "world.json"
)

// Attempt makes the attempt that args name, as the program that runs inside,
// and returns its exit status. It knows the world from a file in the current
// directory: on the command line the judge would see what it is after.
func Attempt(args []string) int {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	switch name {
	case "nothing":
		return 0
	case "sleep":
		time.Sleep(lifetime)
		return 0
	case "victim":
		return beVictim(args[1:])
	}
	for _, r := range rows {
		if r.name != name {
			continue
		}
		var in inside
		data, err := os.ReadFile(world)
		if err == nil {
			err = json.Unmarshal(data, &in)
		}
		if err != nil {
			fmt.Println("attempt:", err)
			return 2
		}
		fmt.Println(tried)
		if err := r.try(&in); err != nil {
			fmt.Printf("%s%v\n", refused, err)
			return 1
		}
		fmt.Println(through)
		return 0
	}
	fmt.Printf("attempt: %q is none\n", name)
	return 2
}

// beVictim is a process outside that tells what is done to it. Its token stands
// in its arguments, its environment and its memory.
func beVictim(args []string) int {
	if len(args) != 1 {
		return 2
	}
	token := []byte(args[0])
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGINT, syscall.SIGHUP, syscall.SIGTERM)
	fmt.Println("ready", uintptr(unsafe.Pointer(&token[0])))
	// SIGTERM is how outside asks what came before it: the runtime hands on
	// signals that wait in the order of their numbers, and it has the highest.
	for s := range ch {
		if s == syscall.SIGTERM {
			break
		}
		fmt.Println("signal:", s)
	}
	runtime.KeepAlive(token)
	return 0
}
