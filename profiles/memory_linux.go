package profiles

import "syscall"

// machineMemory returns the bytes of memory that the machine has.
func machineMemory() (int64, error) {
	var info syscall.Sysinfo_t
	if err := syscall.Sysinfo(&info); err != nil {
		return 0, err
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit)), nil
}
