package runner

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// blobName is the name of a file's content in a repository (gitformat-pack(5),
// git-hash-object(1)).
func blobName(content []byte) [sha1.Size]byte {
	return sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...))
}

// hasObject says whether a repository had an object before a time. Who writes
// into the object store cannot set back the change times of its files.
func hasObject(objects string, name [sha1.Size]byte, before time.Time) bool {
	text := hex.EncodeToString(name[:])
	if info, err := os.Lstat(filepath.Join(objects, text[:2], text[2:])); err == nil {
		return info.Mode().IsRegular() && changed(info).Before(before)
	}
	indexes, _ := filepath.Glob(filepath.Join(objects, "pack", "*.idx"))
	for _, path := range indexes {
		info, err := os.Lstat(path)
		if err == nil && info.Mode().IsRegular() && changed(info).Before(before) && inIndex(path, name) {
			return true
		}
	}
	return false
}

// inIndex looks a name up in a version 2 pack index (gitformat-pack(5)): magic
// and version, 256 counts by first byte, then the sorted names.
func inIndex(path string, name [sha1.Size]byte) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [8 + 256*4]byte
	if _, err := f.ReadAt(head[:], 0); err != nil || !bytes.Equal(head[:8], []byte("\xfftOc\x00\x00\x00\x02")) {
		return false
	}
	count := func(b byte) int64 { return int64(binary.BigEndian.Uint32(head[8+4*int(b):])) }
	lo, hi := int64(0), count(name[0])
	if name[0] > 0 {
		lo = count(name[0] - 1)
	}
	var have [sha1.Size]byte
	for lo < hi {
		mid := (lo + hi) / 2
		if _, err := f.ReadAt(have[:], int64(len(head))+mid*sha1.Size); err != nil {
			return false
		}
		switch bytes.Compare(have[:], name[:]) {
		case 0:
			return true
		case -1:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return false
}
