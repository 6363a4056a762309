package record

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"railhead/internal/ipam/journal"
	"railhead/internal/kernel/kerneltest"
)

// TestDiskReallyFull fills a small file system: attachments are refused with file and
// reason, also by an agent that starts then; pods go; what was on the disk can be read
// all the while; and with room again all is as it should be.
func TestDiskReallyFull(t *testing.T) {
	t.Parallel()
	kerneltest.NetNS(t, func() {
		dir := kerneltest.SmallDisk(t)
		s, end := started(t, dir)
		keep(t, s, numbered(1), numbered(2), numbered(3))
		free := kerneltest.FillDisk(t, dir)
		there := append(ids(s.All()), untilFull(t, s, dir, 4)...)
		if got := ids(s.All()); !slices.Equal(got, there) {
			t.Errorf("there are %v, want %v", got, there)
		}
		there = removeFull(t, s, there)
		all, damage, err := Read(os.DirFS(dir), File)
		if got := ids(all); err != nil || damage == journal.DamageCorrupt || !slices.Equal(got, there) {
			t.Errorf("on the disk are %v, %v, %v, want %v", got, damage, err, there)
		}

		_ = s.Close() // which cannot write what is missing either
		end()
		s, end = started(t, dir)
		if got := ids(s.All()); s.Damage() == journal.DamageCorrupt || !slices.Equal(got, there) {
			t.Errorf("after a start there are %v, %v, want %v", got, s.Damage(), there)
		}
		there = append(there, untilFull(t, s, dir, 500)...)
		if len(there) == 0 {
			t.Fatal("all are removed on a full disk: want it to take not all of that")
		}
		gone := there[0]
		_ = removeFull(t, s, there)
		free()
		keep(t, s, numbered(900))
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		end()
		want := append(slices.DeleteFunc(there, func(id string) bool { return id == gone }), "sandbox900")
		s, end = started(t, dir)
		defer end()
		if got := ids(s.All()); s.Damage() != journal.DamageNone || !slices.Equal(got, want) {
			t.Errorf("with room again there are %v, %v, want %v", got, s.Damage(), want)
		}
	})
}

// started is what an agent has that starts on a directory, until its end.
func started(t *testing.T, dir string) (s *Store, end func()) {
	t.Helper()
	disk, err := journal.OS(dir)
	if err != nil {
		t.Fatal(err)
	}
	return open(t, disk), func() {
		if err := disk.Close(); err != nil {
			t.Error(err)
		}
	}
}

// untilFull puts attachments until the disk takes no more, and returns those that it
// took: there is room left in the last block of a file.
func untilFull(t *testing.T, s *Store, dir string, from int) (taken []string) {
	t.Helper()
	for n := from; n < from+100; n++ {
		a := small(n)
		sync, err := s.Put(a)
		if err == nil {
			err = sync()
		}
		if err == nil {
			taken = append(taken, a.ContainerID)
			continue
		}
		if !errors.Is(err, ErrDisk) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), dir+"/"+File) {
			t.Errorf("put on a full disk: %v, want file and reason", err)
		}
		if _, ok := s.Get(a.ContainerID); ok {
			t.Errorf("%s is there after it was refused", a.ContainerID)
		}
		return taken
	}
	t.Fatal("the disk does not become full")
	return nil
}

// removeFull removes attachments until the disk takes not even that, which is soon, and
// returns what is still on it.
func removeFull(t *testing.T, s *Store, there []string) []string {
	t.Helper()
	for n, id := range there {
		sync, err := s.Remove(id)
		if _, ok := s.Get(id); ok {
			t.Errorf("%s is there after it was removed", id)
		}
		if err == nil {
			err = sync()
		}
		if errors.Is(err, ErrDisk) && errors.Is(err, syscall.ENOSPC) {
			return there[n:]
		}
		if err != nil {
			t.Errorf("remove %s: %v", id, err)
		}
	}
	return nil
}
