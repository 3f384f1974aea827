package profiles

import (
	"encoding/binary"
	"syscall"
)

// machineMemory returns the bytes of memory that the machine has.
func machineMemory() (int64, error) {
	// An integer of 8 bytes, sysctl(3); Sysctl takes it for a string and cuts
	// off a last zero byte.
	text, err := syscall.Sysctl("hw.memsize")
	if err != nil {
		return 0, err
	}
	var raw [8]byte
	copy(raw[:], text)
	return int64(binary.LittleEndian.Uint64(raw[:])), nil
}
