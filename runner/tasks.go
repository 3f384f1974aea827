package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A task in the background outlives whoever started it: a process of its own,
// its keeper, runs the command and keeps a record. Whether the keeper lives is
// told by a lock that it holds, never by a process id, which could be another's
// by now.

const (
	// MaxTasks is how many tasks of a user may run in the background at once.
	MaxTasks = 32
	// maxKeptTasks and maxKeptOutput (in bytes) bound the records of tasks that
	// are over; the oldest go first.
	maxKeptTasks  = 100
	maxKeptOutput = 1 << 30
)

// TaskState says where a task in the background is.
type TaskState string

const (
	TaskStarting TaskState = "starting" // it is judged, and asked about
	TaskRunning  TaskState = "running"
	TaskEnded    TaskState = "ended"
	// TaskLost is a task whose keeper was killed, and the command with it. How
	// that ended is not known.
	TaskLost TaskState = "lost"
)

// TaskRecord is what is kept of a task in the background.
type TaskRecord struct {
	Version   int       `json:"version"` // 1; fields are added, never renamed
	ID        string    `json:"id"`
	State     TaskState `json:"state"`
	Script    string    `json:"command,omitempty"`
	Args      []string  `json:"argv,omitempty"`
	Dir       string    `json:"cwd"`
	Workspace string    `json:"workspace"`
	PID       int       `json:"pid"` // of the keeper, for people; it may be another's once the task is over
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended,omitzero"`
	Cause     Cause     `json:"cause,omitempty"`     // as in a Result, once it has ended
	ExitCode  *int      `json:"exit_code,omitempty"` // missing if it did not exit by itself
	Signal    string    `json:"signal,omitempty"`    // what it died of
	Output    string    `json:"output_file"`         // stdout and stderr
	Bytes     int64     `json:"output_bytes"`        // of that file
	Notices   []Notice  `json:"notices,omitempty"`
}

// Over says that the task runs no more.
func (r *TaskRecord) Over() bool { return r.State == TaskEnded || r.State == TaskLost }

// Tasks are the tasks in the background of this user.
type Tasks struct{ root, dir string }

// OpenTasks makes nothing.
func OpenTasks() *Tasks {
	home, _ := homes(nil)
	_, state := ownDirs(home)
	return &Tasks{root: state, dir: filepath.Join(state, "tasks")}
}

// Keeper holds one task in the background. It is the keeper's process that has
// it; when that goes away, the task is lost.
type Keeper struct {
	Record TaskRecord
	Output *os.File // takes what the command writes

	dir           string
	lock, control *os.File
	stop          chan struct{}
}

// The files of a task, in a directory that is named by its id.
const (
	taskRecordFile = "task.json"
	taskLockFile   = "lock"    // held by the keeper
	taskStopFile   = "control" // a FIFO that the keeper reads; anything written asks it to end the task
	taskOutputFile = "output"
)

// Keep makes the record of a task that is about to run c. The oldest records of
// tasks that are over go where there are too many.
func (s *Tasks) Keep(c Command) (*Keeper, error) {
	where, _, err := place(&c)
	if err != nil {
		return nil, err
	}
	all, err := s.lockAll()
	if err != nil {
		return nil, err
	}
	defer all.Close()
	if err := s.makeRoom(); err != nil {
		return nil, err
	}
	k := &Keeper{stop: make(chan struct{}, 1)}
	k.Record = TaskRecord{
		Version: 1, ID: token()[:8], State: TaskStarting, Script: c.Script, Args: c.Args,
		Dir: where.Cwd, Workspace: where.Workspace, PID: os.Getpid(), Began: time.Now().UTC(),
	}
	k.dir = filepath.Join(s.dir, k.Record.ID)
	k.Record.Output = filepath.Join(k.dir, taskOutputFile)
	if err := k.make(); err != nil {
		k.Discard()
		return nil, &StateError{Path: k.dir, Err: cause(err)}
	}
	go k.listen()
	return k, nil
}

func (k *Keeper) make() (err error) {
	if err = os.Mkdir(k.dir, 0o700); err != nil {
		return err
	}
	create := func(name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(k.dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if k.lock, err = create(taskLockFile); err != nil {
		return err
	}
	if err = lock(k.lock); err != nil {
		return err
	}
	if k.Output, err = create(taskOutputFile); err != nil {
		return err
	}
	path := filepath.Join(k.dir, taskStopFile)
	if err = unix.Mkfifo(path, 0o600); err != nil {
		return err
	}
	// Open for writing too, so that there is no end of file when a writer goes,
	// and not blocking, so that Close ends a Read (fifo(7)).
	if k.control, err = os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0); err != nil {
		return err
	}
	return k.save()
}

func (k *Keeper) save() error {
	text, err := json.MarshalIndent(k.Record, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(k.dir, taskRecordFile), append(text, '\n'))
}

func (k *Keeper) listen() {
	defer close(k.stop)
	k.control.Read(make([]byte, 64)) // ends with a request, or when it is closed
}

// Started records that the command runs.
func (k *Keeper) Started() error {
	k.Record.State, k.Record.Began = TaskRunning, time.Now().UTC()
	return k.save()
}

// StopAsked is closed when somebody asks for the end of the task.
func (k *Keeper) StopAsked() <-chan struct{} { return k.stop }

// Finish records how the task ended.
func (k *Keeper) Finish(r Result) error {
	k.Record.State, k.Record.Ended, k.Record.Cause, k.Record.Notices = TaskEnded, time.Now().UTC(), r.Cause, r.Notices
	if r.ExitCode >= 0 {
		k.Record.ExitCode = &r.ExitCode
	}
	if r.Signal != 0 {
		k.Record.Signal = unix.SignalName(r.Signal)
	}
	if info, err := k.Output.Stat(); err == nil {
		k.Record.Bytes = info.Size()
	}
	err := k.save()
	k.close()
	return err
}

// Discard removes all that was made for a task which did not run, or that ended
// before anybody was told of it.
func (k *Keeper) Discard() {
	os.RemoveAll(k.dir)
	k.close()
}

func (k *Keeper) close() {
	for _, f := range []*os.File{k.Output, k.control, k.lock} {
		if f != nil {
			f.Close()
		}
	}
}

// List returns the tasks, the oldest first.
func (s *Tasks) List() (list []TaskRecord, err error) {
	err = s.locked(func(all []TaskRecord) error {
		list = all
		return nil
	})
	return list, err
}

// locked calls do with all tasks, none of which comes or goes meanwhile.
func (s *Tasks) locked(do func([]TaskRecord) error) error {
	if _, err := os.Lstat(s.dir); errors.Is(err, fs.ErrNotExist) {
		return do(nil)
	}
	all, err := s.lockAll()
	if err != nil {
		return err
	}
	defer all.Close()
	list, err := s.list()
	if err != nil {
		return err
	}
	return do(list)
}

// list is List for whoever holds the lock of all. What a keeper left that was
// killed while it made a record is removed.
func (s *Tasks) list() ([]TaskRecord, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil, &StateError{Path: s.dir, Err: cause(err)}
	}
	var list []TaskRecord
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		record, err := s.read(entry.Name())
		if errors.Is(err, fs.ErrNotExist) {
			if err := os.RemoveAll(filepath.Join(s.dir, entry.Name())); err != nil {
				return nil, &StateError{Path: s.dir, Err: cause(err)}
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, record)
	}
	slices.SortFunc(list, func(a, b TaskRecord) int { return a.Began.Compare(b.Began) })
	return list, nil
}

// Get returns one task.
func (s *Tasks) Get(id string) (TaskRecord, error) {
	missing := &CommandError{Field: "task", Value: id, Err: errors.New("there is none"), Hint: "sandbox-exec task list shows them"}
	if id == "" || strings.Trim(id, "0123456789abcdef") != "" {
		return TaskRecord{}, missing
	}
	r, err := s.read(id)
	if errors.Is(err, fs.ErrNotExist) {
		err = missing
	}
	return r, err
}

// read reads a record and says whether its keeper still lives.
func (s *Tasks) read(id string) (TaskRecord, error) {
	dir := filepath.Join(s.dir, id)
	// In this order: a keeper writes how the task ended before it lets go of the
	// lock.
	kept, err := held(filepath.Join(dir, taskLockFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return TaskRecord{}, &StateError{Path: dir, Err: cause(err)}
	}
	path := filepath.Join(dir, taskRecordFile)
	data, err := readSmall(path, maxState)
	if errors.Is(err, fs.ErrNotExist) {
		return TaskRecord{}, err
	}
	var r TaskRecord
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err == nil && (r.Version != 1 || r.ID != id) {
		err = errors.New("it is not the record of this task")
	}
	if err != nil {
		return r, &StateError{Path: path, Err: cause(err), Hint: "remove the directory"}
	}
	if r.State != TaskEnded && !kept {
		r.State = TaskLost
	}
	if r.State != TaskEnded {
		if info, err := os.Lstat(filepath.Join(dir, taskOutputFile)); err == nil {
			r.Bytes = info.Size()
		}
	}
	return r, nil
}

// held says whether somebody holds the lock of a file. A shared lock is tried,
// so that those who ask at the same time do not see one another.
func held(path string) (bool, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false, err
	}
	defer f.Close()
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if err == unix.EWOULDBLOCK {
		return true, nil
	}
	return false, err
}

// Wait returns when the task is over.
func (s *Tasks) Wait(ctx context.Context, id string) (TaskRecord, error) {
	pause := 5 * time.Millisecond
	for {
		r, err := s.Get(id)
		if err != nil || r.Over() {
			return r, err
		}
		select {
		case <-ctx.Done():
			return r, ctx.Err()
		case <-time.After(pause):
			pause = min(2*pause, 200*time.Millisecond)
		}
	}
}

// Stop asks the keeper of a task to end it, and returns when it is over. The
// task gets SIGTERM, its grace time, SIGKILL.
func (s *Tasks) Stop(ctx context.Context, id string) (TaskRecord, error) {
	r, err := s.Get(id)
	if err != nil || r.Over() {
		return r, err
	}
	// Where nobody reads it, opening fails (ENXIO, fifo(7)): the keeper has ended
	// meanwhile, or runs on another machine that shares this directory.
	path := filepath.Join(s.dir, id, taskStopFile)
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err == nil {
		_, err = f.WriteString("stop\n")
		f.Close()
	}
	if err != nil {
		if r, again := s.Get(id); again != nil || r.Over() {
			return r, again
		}
		return r, &StateError{Path: path, Err: cause(err), Hint: "the task runs, but not on this machine"}
	}
	return s.Wait(ctx, id)
}

// Prune removes the records and the output of the tasks that are over, and
// returns their ids.
func (s *Tasks) Prune() (gone []string, err error) {
	err = s.locked(func(list []TaskRecord) error {
		for _, r := range list {
			if !r.Over() {
				continue
			}
			if err := s.remove(r.ID); err != nil {
				return err
			}
			gone = append(gone, r.ID)
		}
		return nil
	})
	return gone, err
}

// makeRoom keeps the limits, for one more task.
func (s *Tasks) makeRoom() error {
	list, err := s.list()
	if err != nil {
		return err
	}
	running := 0
	var kept, bytes int64
	for _, r := range slices.Backward(list) {
		if !r.Over() {
			running++
			continue
		}
		kept++
		bytes += r.Bytes
		if kept >= maxKeptTasks || bytes > maxKeptOutput {
			if err := s.remove(r.ID); err != nil {
				return err
			}
		}
	}
	if running >= MaxTasks {
		return &CommandError{Field: "task", Err: fmt.Errorf("%d are running, as many as may", running), Hint: "sandbox-exec task list shows them, task stop ID ends one"}
	}
	return nil
}

func (s *Tasks) remove(id string) error {
	dir := filepath.Join(s.dir, id)
	if err := os.RemoveAll(dir); err != nil {
		return &StateError{Path: dir, Err: cause(err)}
	}
	return nil
}

// lockAll takes the lock under which tasks are made, listed and removed, so
// that none is seen before its keeper holds it.
func (s *Tasks) lockAll() (*os.File, error) {
	f, err := lockIn(s.root, s.dir)
	if err != nil {
		return nil, &StateError{Path: s.dir, Err: cause(err), Hint: "inside a sandbox it is hidden"}
	}
	return f, nil
}
