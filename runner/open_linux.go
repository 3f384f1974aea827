package runner

import "golang.org/x/sys/unix"

// dirFlags open a directory only to look names up in it: that needs no leave to
// list it.
const dirFlags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW
