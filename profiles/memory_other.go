//go:build !linux && !darwin

package profiles

import "errors"

func machineMemory() (int64, error) { return 0, errors.ErrUnsupported }
