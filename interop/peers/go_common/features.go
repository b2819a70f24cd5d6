package common

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	OrderText = "one large coffee, with milk, for Ada"
	Prompt    = "Capital of Portugal?"
	Answer    = "Lisbon"
	Root      = "file:///interop/project"
	Unicode   = "π ☕ 日本語 👩\u200d👩\u200d👧 e\u0301 \u2028 \u2029 \u0085 \u0000 \"\\ \t\r\n end"
)

var (
	Slow       = map[string]any{"steps": 600, "step_ms": 100}
	CoffeeForm = map[string]any{"size": "large", "milk": true, "name": "Ada"}
)

// Missing is the error of a feature that the SDK does not have.
type Missing string

func (m Missing) Error() string { return string(m) }

type ClientOptions struct {
	Mode   string
	Hold   bool
	only   map[string]bool
	Server []string
}

func ClientFlags() ClientOptions {
	var o ClientOptions
	flag.StringVar(&o.Mode, "mode", "default", "how to connect")
	flag.BoolVar(&o.Hold, "hold", false, "start one call and wait to be killed")
	only := flag.String("only", "", "run these features only, comma separated")
	flag.Parse()
	o.Server = flag.Args()
	if *only != "" {
		o.only = map[string]bool{}
		for _, name := range strings.Split(*only, ",") {
			o.only[name] = true
		}
	}
	return o
}

func Say(line map[string]any) {
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

// Agreed tells the revision.
func Agreed(revision string) {
	era := "legacy"
	if revision >= "2026-07-28" {
		era = "modern"
	}
	Say(map[string]any{"agreed": revision, "era": era})
}

// Run tries one feature within its deadline.
func (o ClientOptions) Run(name string, feature func(context.Context) error) {
	if o.only != nil && !o.only[name] {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 45*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- feature(ctx) }()
	var err error
	select {
	case err = <-ended:
	case <-time.After(46 * time.Second):
		err = errors.New("it hangs")
	}
	line := map[string]any{"feature": name, "ok": true, "note": ""}
	var missing Missing
	if errors.As(err, &missing) {
		line["ok"], line["note"] = nil, string(missing)
	} else if err != nil {
		note := err.Error()
		line["ok"], line["note"] = false, note[:min(len(note), 400)]
	}
	Say(line)
}

// Check is an error unless it is true.
func Check(true bool, what any) error {
	if true {
		return nil
	}
	return fmt.Errorf("%v", what)
}

// Until waits for a condition.
func Until(ctx context.Context, condition func() bool) error {
	for !condition() {
		select {
		case <-ctx.Done():
			return errors.New("it did not come")
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// Servers are the children of this process that live.
func Servers() map[int]bool {
	found := map[int]bool{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[1] == strconv.Itoa(os.Getpid()) && fields[0] != "Z" {
			found[pid] = true
		}
	}
	return found
}

// Since are the children that were not there before.
func Since(before map[int]bool) map[int]bool {
	found := Servers()
	for pid := range before {
		delete(found, pid)
	}
	return found
}

func Kill(pids map[int]bool) {
	for pid := range pids {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Gone waits until none of pids is left.
func Gone(ctx context.Context, pids map[int]bool) error {
	return Until(ctx, func() bool {
		left := Servers()
		for pid := range pids {
			if left[pid] {
				return false
			}
		}
		return true
	})
}
