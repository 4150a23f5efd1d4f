// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/beep-lb/beep/harness/vm"
	"github.com/beep-lb/beep/harness/vm/job"
)

// Options vary a guest.
type Options struct {
	Name      string   // of the machine
	Modules   []string // loaded before the first run, for what no kernel asks for by itself: tun
	Runs      []job.Run
	MemoryMiB int    // 0 is 2048
	CPUs      int    // 0 is 2
	Dir       string // gets serial.log, the log of each run, and artifacts.tar of what failed specs left; it exists
}

// Guest is a machine at its job.
type Guest struct {
	*vm.Machine
	initrd   string
	finished chan struct{} // closed when the machine has ended and everything it said is there
	done     map[string]chan struct{}

	mu      sync.Mutex
	results map[string]*Result
	failure error // of reading what the machine says; set before finished
}

// Result is what came of a run.
type Result struct {
	job.End
	Output string // standard output and error
}

// Err is nil for exit status 0.
func (r Result) Err() error {
	if r.Code == 0 {
		return nil
	}
	return errors.New(strings.TrimSpace(fmt.Sprintf("exit status %d %s", r.Code, r.Error)))
}

// Boot starts a machine that performs the runs and powers off. The caller calls Stop. The context needs a deadline,
// and ends nothing but Boot.
func (b Binaries) Boot(ctx context.Context, kernel vm.Kernel, o Options) (*Guest, error) {
	initrd, err := b.initrd(kernel, o)
	if err != nil {
		return nil, fmt.Errorf("guest %s: %w", o.Name, err)
	}
	machine, err := vm.Start(ctx, vm.Config{
		Name: o.Name, Kernel: kernel.Image(), Initrd: initrd, Cmdline: "quiet oops=panic",
		MemoryMiB: cmp.Or(o.MemoryMiB, 2048), CPUs: cmp.Or(o.CPUs, 2),
		Ports: []string{job.EventPort, job.ArtifactsPort}, Log: filepath.Join(o.Dir, "serial.log"),
	})
	if err != nil {
		return nil, errors.Join(err, os.Remove(initrd))
	}
	guest := &Guest{
		Machine: machine, initrd: initrd, finished: make(chan struct{}),
		done: make(map[string]chan struct{}), results: make(map[string]*Result),
	}
	for _, run := range o.Runs {
		guest.done[run.Name], guest.results[run.Name] = make(chan struct{}), &Result{}
	}
	go guest.follow(o.Dir)
	return guest, nil
}

// initrd writes the image of the root file system to a temporary file and returns its path.
func (b Binaries) initrd(kernel vm.Kernel, o Options) (name string, err error) {
	modules := append([]string{"virtio_pci", "virtio_console"}, o.Modules...) // for the ports
	todo, err := json.Marshal(job.Job{Modules: modules, Runs: o.Runs})
	if err != nil {
		return "", fmt.Errorf("write its job: %w", err)
	}
	image, err := b.image(kernel, todo)
	if err != nil {
		return "", err
	}
	file, err := os.CreateTemp(b.Dir, "initrd-")
	if err != nil {
		return "", fmt.Errorf("write its image: %w", err)
	}
	return file.Name(), errors.Join(image.Write(file), file.Close())
}

// follow keeps what the machine says until it has ended.
func (g *Guest) follow(dir string) {
	var following sync.WaitGroup
	var artifacts error
	following.Go(func() { artifacts = keep(g.Port(job.ArtifactsPort), filepath.Join(dir, "artifacts.tar")) })
	logs := make(map[string]*os.File)
	var errs []error
	err := job.Read(g.Port(job.EventPort), func(event job.Event) {
		log := logs[event.Run]
		if log == nil {
			var err error
			if log, err = os.Create(filepath.Join(dir, strings.ReplaceAll(event.Run, "/", "-")+".log")); err != nil {
				errs = append(errs, err)
			}
			logs[event.Run] = log
		}
		if log != nil {
			_, err := io.WriteString(log, event.Output)
			errs = append(errs, err)
		}
		g.take(event)
	})
	for _, log := range logs {
		errs = append(errs, log.Close())
	}
	following.Wait()
	g.mu.Lock()
	g.failure = errors.Join(append(errs, err, artifacts)...)
	g.mu.Unlock()
	<-g.Done()
	close(g.finished)
}

func (g *Guest) take(event job.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	result := g.results[event.Run]
	if result == nil {
		return
	}
	result.Output += event.Output
	if event.End != nil {
		result.End = *event.End
		close(g.done[event.Run])
	}
}

// keep copies what comes to a file, which is not made before the first byte.
func keep(from io.Reader, name string) error {
	first := make([]byte, 1)
	if n, err := from.Read(first); n == 0 {
		if err == io.EOF {
			return nil
		}
		return fmt.Errorf("keep the artifacts: %w", err)
	}
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("keep the artifacts: %w", err)
	}
	_, err = io.Copy(file, io.MultiReader(strings.NewReader(string(first)), from))
	return errors.Join(err, file.Close())
}

// Await waits for the end of a run. That the machine ended without it, or the context, which needs a deadline, is an
// error; how the program ended is in the result, which holds the output so far in any case.
func (g *Guest) Await(ctx context.Context, run string) (Result, error) {
	done, ok := g.done[run]
	if !ok {
		return Result{}, fmt.Errorf("the machine has no run %q", run)
	}
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("%s has not ended: %w", run, ctx.Err())
	case <-g.finished:
		select {
		case <-done:
		default:
			lines := strings.Split(strings.TrimSpace(g.Serial()), "\n")
			err = fmt.Errorf("the machine ended before %s did; its console's last lines:\n%s", run,
				strings.Join(lines[max(0, len(lines)-20):], "\n"))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return *g.results[run], err
}

// Stop ends the machine as vm.Machine.Stop does, and removes its image.
func (g *Guest) Stop() error {
	err := g.Machine.Stop()
	if removing := os.Remove(g.initrd); !errors.Is(removing, fs.ErrNotExist) {
		err = errors.Join(err, removing)
	}
	return err
}

// AwaitEnd waits until the machine has powered off and everything that it sent is in files.
func (g *Guest) AwaitEnd(ctx context.Context) error {
	if err := g.Wait(ctx); err != nil {
		return err
	}
	select {
	case <-g.finished:
		return g.failure
	case <-ctx.Done():
		return fmt.Errorf("the machine's last words are not there: %w", ctx.Err())
	}
}
