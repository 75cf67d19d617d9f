package store

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
)

// A backup file is this line, the engine's own stream, and the stream's SHA-256. The engine trusts the sizes
// in what it loads, so nothing is loaded before the whole file was checked.
const backupMagic = "isthmus backup 1\n"

// ErrNotABackup is returned for a file that is no backup, or no longer the one that was written.
var ErrNotABackup = errors.New("this is not a whole Isthmus backup: it is another file, cut short, or changed")

// Seal writes a backup: what is written goes to w, framed. Close ends the frame and leaves w open.
func Seal(w io.Writer) (io.WriteCloser, error) {
	if _, err := io.WriteString(w, backupMagic); err != nil {
		return nil, err
	}
	return &seal{w: w, sum: sha256.New()}, nil
}

type seal struct {
	w   io.Writer
	sum hash.Hash
}

// Write adds to the backup.
func (s *seal) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	s.sum.Write(p[:n])
	return n, err
}

// Close writes the sum.
func (s *seal) Close() error {
	_, err := s.w.Write(s.sum.Sum(nil))
	return err
}

// Unseal checks a whole backup file of a size and returns its stream, or ErrNotABackup.
func Unseal(file io.ReaderAt, size int64) (io.Reader, error) {
	length := size - int64(len(backupMagic)) - sha256.Size
	if length < 0 {
		return nil, ErrNotABackup
	}
	magic := make([]byte, len(backupMagic))
	want := make([]byte, sha256.Size)
	if _, err := file.ReadAt(magic, 0); err != nil {
		return nil, err
	}
	if _, err := file.ReadAt(want, size-sha256.Size); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(file, int64(len(backupMagic)), length)); err != nil {
		return nil, err
	}
	if string(magic) != backupMagic || !bytes.Equal(sum.Sum(nil), want) {
		return nil, ErrNotABackup
	}
	return io.NewSectionReader(file, int64(len(backupMagic)), length), nil
}
