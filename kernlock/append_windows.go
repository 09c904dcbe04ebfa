package kernlock

import (
	"errors"
	"fmt"

	"github.com/stile-lock/stile/internal/display"
	"golang.org/x/sys/windows"
)

// appendIncident adds one row to the incidents file at path.
func appendIncident(path string, _ *lockFile, in *Incident) error {
	row, err := canonicalJSON(in)
	if err == nil {
		err = appendRow(path, append(row, '\n'))
	}
	if err != nil {
		return fmt.Errorf("append incident to %s: %w", display.Text(path), err)
	}
	return nil
}

func appendRow(path string, row []byte) error {
	for range 8 {
		// Appending alone: the system puts each write at the end.
		h, err := createFile(path, windows.FILE_APPEND_DATA|windows.FILE_READ_DATA|windows.SYNCHRONIZE, windows.OPEN_ALWAYS)
		if err != nil {
			return err
		}
		var info windows.ByHandleFileInformation
		err = windows.GetFileInformationByHandle(h, &info)
		if t, _ := windows.GetFileType(h); err == nil && t != windows.FILE_TYPE_DISK {
			err = errors.New("not a plain file")
		}
		const odd = windows.FILE_ATTRIBUTE_REPARSE_POINT | windows.FILE_ATTRIBUTE_DIRECTORY
		if err == nil && (info.FileAttributes&odd != 0 || info.NumberOfLinks > 1) {
			// Another of its names may be of a file that is no incidents file.
			err = errors.New("it is a link, a folder, or has several hard links")
		}
		size := int64(info.FileSizeHigh)<<32 | int64(info.FileSizeLow)
		if err == nil && size >= maxIncidents && rotate(h, path, &info) {
			_ = windows.CloseHandle(h)
			continue
		}
		if err == nil {
			err = appendWhole(h, size, row)
		}
		return errors.Join(err, windows.CloseHandle(h))
	}
	return errors.New("rotated again and again")
}

// appendWhole writes row with one call, after closing a last line that was
// left unfinished.
func appendWhole(h windows.Handle, size int64, row []byte) error {
	if size > 0 {
		var last [1]byte
		var n uint32
		at := windows.Overlapped{Offset: uint32(size - 1), OffsetHigh: uint32((size - 1) >> 32)}
		if windows.ReadFile(h, last[:], &n, &at) == nil && n == 1 && last[0] != '\n' {
			row = append([]byte{'\n'}, row...)
		}
	}
	var n uint32
	at := windows.Overlapped{Offset: 0xffffffff, OffsetHigh: 0xffffffff} // the end, whatever it is by then
	if err := windows.WriteFile(h, row, &n, &at); err != nil {
		return err
	}
	if int(n) < len(row) {
		return windows.ERROR_DISK_FULL
	}
	return nil
}

// rotate makes the full incidents file <path>.1 and says whether path is now
// another file; see the Unix one for why it takes a lock of that very file.
func rotate(h windows.Handle, path string, full *windows.ByHandleFileInformation) bool {
	f := &lockFile{handle: h, volume: full.VolumeSerialNumber,
		index: uint64(full.FileIndexHigh)<<32 | uint64(full.FileIndexLow)}
	if ok, err := f.try(false); err != nil || !ok {
		return false
	}
	defer func() { _ = f.unlock() }()
	if same, err := f.at(path); err != nil || !same {
		return err == nil
	}
	return replaceFile(path, path+rotatedSuffix) == nil
}
