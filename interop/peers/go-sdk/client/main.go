// The official Go SDK as a client, on its command transport.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	common "interop/go_common"
)

var (
	options = common.ClientFlags()
	check   = common.Check
)

// tries is one connection, and what its handlers heard.
type tries struct {
	*mcp.ClientSession
	mu       sync.Mutex
	progress []float64
	logs     []*mcp.LoggingMessageParams
	changed  atomic.Int64
	updated  atomic.Int64
}

func connect(ctx context.Context) (*tries, error) {
	t := &tries{}
	client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1.0.0"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "none", Content: &mcp.TextContent{Text: common.Answer}}, nil
		},
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			form := common.CoffeeForm
			if strings.Contains(fmt.Sprint(req.Params.RequestedSchema), "right") {
				form = map[string]any{"right": true}
			}
			return &mcp.ElicitResult{Action: "accept", Content: form}, nil
		},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { t.changed.Add(1) },
		ResourceUpdatedHandler: func(context.Context, *mcp.ResourceUpdatedNotificationRequest) { t.updated.Add(1) },
		LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.logs = append(t.logs, req.Params)
		},
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.progress = append(t.progress, req.Params.Progress)
		},
	})
	client.AddRoots(&mcp.Root{URI: common.Root, Name: "project"})
	command := exec.Command(options.Server[0], options.Server[1:]...)
	command.Stderr = os.Stderr
	how := &mcp.ClientSessionOptions{}
	if options.Mode == "legacy" {
		how.ProtocolVersion = "2025-11-25"
	}
	var transport mcp.Transport = &mcp.CommandTransport{Command: command}
	if isURL() {
		transport = &mcp.StreamableClientTransport{Endpoint: options.Server[0]}
	}
	session, err := client.Connect(ctx, transport, how)
	t.ClientSession = session
	return t, err
}

// isURL says whether the server runs already: then its process is not ours to end.
func isURL() bool { return strings.HasPrefix(options.Server[0], "http://") }

func (t *tries) modern() bool { return t.InitializeResult().ProtocolVersion >= "2026-07-28" }

func (t *tries) reports() []float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.progress)
}

func (t *tries) tool(ctx context.Context, name string, arguments map[string]any) (string, error) {
	result, err := t.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		return "", err
	}
	if result.IsError {
		return "", errors.New("isError: " + text(result.Content))
	}
	return text(result.Content), nil
}

func text(content []mcp.Content) string {
	if len(content) > 0 {
		if block, ok := content[0].(*mcp.TextContent); ok {
			return block.Text
		}
	}
	return fmt.Sprint(content)
}

func same(err error, got, want string) error {
	if err != nil {
		return err
	}
	return check(got == want, fmt.Sprintf("%.100q is not %.100q", got, want))
}

func (t *tries) echo(ctx context.Context, what string) error {
	got, err := t.tool(ctx, "echo", map[string]any{"text": what})
	return same(err, got, what)
}

func (t *tries) names(ctx context.Context) (names []string, pages int, err error) {
	cursor := ""
	for {
		page, err := t.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, pages, err
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		pages++
		if cursor = page.NextCursor; cursor == "" {
			return names, pages, nil
		}
	}
}

func (t *tries) features() {
	run := options.Run
	run("list", func(ctx context.Context) error {
		page, err := t.ListTools(ctx, nil)
		if err != nil {
			return err
		}
		return check(page.Tools[0].Name == "echo", page.Tools[0].Name)
	})
	run("paging", func(ctx context.Context) error {
		names, pages, err := t.names(ctx)
		if err != nil {
			return err
		}
		return check(pages >= 2 && len(names) >= 14, fmt.Sprintf("%d pages: %v", pages, names))
	})
	run("call", func(ctx context.Context) error { return t.echo(ctx, "hello") })
	run("structured", func(ctx context.Context) error {
		result, err := t.CallTool(ctx, &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"a": 2, "b": 3}})
		if err != nil {
			return err
		}
		return check(fmt.Sprint(result.StructuredContent) == "map[sum:5]", result.StructuredContent)
	})
	run("error", func(ctx context.Context) error {
		result, err := t.CallTool(ctx, &mcp.CallToolParams{Name: "fail", Arguments: map[string]any{"reason": "no beans"}})
		if err != nil {
			return err
		}
		return check(result.IsError && strings.Contains(text(result.Content), "no beans"), result)
	})
	run("progress", t.tryProgress)
	run("cancel", t.tryCancel)
	run("log", t.tryLog)
	run("resources", func(ctx context.Context) error {
		listed, err := t.ListResources(ctx, nil)
		if err != nil {
			return err
		}
		read, err := t.ReadResource(ctx, &mcp.ReadResourceParams{URI: "demo://readme"})
		if err != nil {
			return err
		}
		return check(listed.Resources[0].URI == "demo://readme" && strings.HasPrefix(read.Contents[0].Text, "# "), listed)
	})
	run("template", func(ctx context.Context) error {
		listed, err := t.ListResourceTemplates(ctx, nil)
		if err != nil {
			return err
		}
		read, err := t.ReadResource(ctx, &mcp.ReadResourceParams{URI: "weather://Bern/today"})
		if err != nil {
			return err
		}
		return check(listed.ResourceTemplates[0].URITemplate == "weather://{city}/today" && strings.Contains(read.Contents[0].Text, "Bern: sunny"), read)
	})
	run("subscribe", t.trySubscribe)
	run("prompts", func(ctx context.Context) error {
		listed, err := t.ListPrompts(ctx, nil)
		if err != nil {
			return err
		}
		result, err := t.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": "Ada", "language": "Dutch"}})
		if err != nil {
			return err
		}
		return check(len(listed.Prompts) == 2 && text([]mcp.Content{result.Messages[0].Content}) == "Greet Ada in Dutch.", result)
	})
	run("completion", t.tryCompletion)
	run("ask", func(ctx context.Context) error {
		got, err := t.tool(ctx, "ask", nil)
		return same(err, got, common.OrderText)
	})
	run("sample", func(ctx context.Context) error {
		got, err := t.tool(ctx, "sample", map[string]any{"prompt": common.Prompt})
		return same(err, got, common.Answer)
	})
	run("roots", func(ctx context.Context) error {
		got, err := t.tool(ctx, "roots", nil)
		return same(err, got, common.Root)
	})
	run("changed", t.tryChanged)
	run("unicode", func(ctx context.Context) error { return t.echo(ctx, common.Unicode) })
	run("mib1", func(ctx context.Context) error { return t.echo(ctx, strings.Repeat("x", 1<<20)) })
	// Over HTTP a request may have 4 MiB.
	if !isURL() {
		run("mib10", func(ctx context.Context) error { return t.echo(ctx, strings.Repeat("x", 10<<20)) })
	}
	run("hundred", func(ctx context.Context) error {
		ended := make(chan error)
		for number := range 100 {
			go func() { ended <- t.echo(ctx, fmt.Sprintf("call %d", number)) }()
		}
		var errs []error
		for range 100 {
			errs = append(errs, <-ended)
		}
		return errors.Join(errs...)
	})
}

// slow calls the tool `slow` with a progress token.
func (t *tries) slow(ctx context.Context, steps, stepMs int) (*mcp.CallToolResult, error) {
	params := &mcp.CallToolParams{Name: "slow", Arguments: map[string]any{"steps": steps, "step_ms": stepMs}, Meta: mcp.Meta{}}
	params.SetProgressToken("slow")
	t.mu.Lock()
	t.progress = nil
	t.mu.Unlock()
	return t.CallTool(ctx, params)
}

func (t *tries) tryProgress(ctx context.Context) error {
	result, err := t.slow(ctx, 5, 100)
	if err != nil {
		return err
	}
	common.Until(ctx, func() bool { return len(t.reports()) >= 3 })
	seen := t.reports()
	return check(len(seen) >= 3 && slices.IsSorted(seen) && text(result.Content) == "done after 5 steps", seen)
}

func (t *tries) tryCancel(ctx context.Context) error {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := t.slow(call, 200, 50)
		ended <- err
	}()
	if err := common.Until(ctx, func() bool { return len(t.reports()) > 0 }); err != nil {
		return err
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the call ended with %v", err)
	}
	return t.echo(ctx, "still here")
}

func (t *tries) tryLog(ctx context.Context) error {
	params := &mcp.CallToolParams{Name: "log", Arguments: map[string]any{"level": "warning", "message": "careful"}}
	if t.modern() {
		params.Meta = mcp.Meta{mcp.MetaKeyLogLevel: "debug"}
	} else if err := t.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "debug"}); err != nil {
		return err
	}
	if _, err := t.CallTool(ctx, params); err != nil {
		return err
	}
	return common.Until(ctx, func() bool {
		t.mu.Lock()
		defer t.mu.Unlock()
		return len(t.logs) > 0 && t.logs[0].Level == "warning" && t.logs[0].Data == "careful"
	})
}

func (t *tries) trySubscribe(ctx context.Context) error {
	if err := t.Subscribe(ctx, &mcp.SubscribeParams{URI: "demo://touched"}); err != nil {
		return err
	}
	if _, err := t.tool(ctx, "touch", nil); err != nil {
		return err
	}
	if err := common.Until(ctx, func() bool { return t.updated.Load() > 0 }); err != nil {
		return err
	}
	return t.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: "demo://touched"})
}

func (t *tries) tryCompletion(ctx context.Context) error {
	complete := func(ref *mcp.CompleteReference, name, value string) (string, error) {
		result, err := t.Complete(ctx, &mcp.CompleteParams{Ref: ref, Argument: mcp.CompleteParamsArgument{Name: name, Value: value}})
		if err != nil {
			return "", err
		}
		return strings.Join(result.Completion.Values, " "), nil
	}
	got, err := complete(&mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, "language", "Ge")
	if err := same(err, got, "German"); err != nil {
		return err
	}
	got, err = complete(&mcp.CompleteReference{Type: "ref/resource", URI: "weather://{city}/today"}, "city", "be")
	return same(err, got, "Berlin Bern")
}

func (t *tries) tryChanged(ctx context.Context) error {
	if _, err := t.tool(ctx, "add_tool", map[string]any{"name": "later", "says": "here I am"}); err != nil {
		return err
	}
	if err := common.Until(ctx, func() bool { return t.changed.Load() > 0 }); err != nil {
		return err
	}
	names, _, err := t.names(ctx)
	if err != nil {
		return err
	}
	if !slices.Contains(names, "later") {
		return fmt.Errorf("it is not listed: %v", names)
	}
	got, err := t.tool(ctx, "later", nil)
	return same(err, got, "here I am")
}

func inFlight(ctx context.Context) error {
	before := common.Servers()
	t, err := connect(ctx)
	if err != nil {
		return err
	}
	// Close waits for the calls in flight, so they are let go a moment after it began.
	calls, letGo := context.WithCancel(ctx)
	defer letGo()
	ended := make(chan error)
	for range 3 {
		go func() {
			_, err := t.tool(calls, "slow", common.Slow)
			ended <- err
		}()
	}
	time.Sleep(200 * time.Millisecond)
	ours := common.Since(before)
	closed := make(chan error, 1)
	go func() { closed <- t.Close() }()
	time.AfterFunc(time.Second, letGo)
	for range 3 {
		if err := <-ended; err == nil {
			return errors.New("a call did not fail")
		}
	}
	<-closed
	return common.Gone(ctx, ours)
}

func killed(ctx context.Context) error {
	before := common.Servers()
	t, err := connect(ctx)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := t.tool(ctx, "slow", common.Slow)
		ended <- err
	}()
	time.Sleep(200 * time.Millisecond)
	common.Kill(common.Since(before))
	select {
	case err := <-ended:
		fmt.Fprintln(os.Stderr, "kill:", err)
		return check(err != nil, "the call did not fail")
	case <-time.After(10 * time.Second):
		return errors.New("the call hangs")
	}
}

func main() {
	ctx := context.Background()
	t, err := connect(ctx)
	if err != nil {
		common.Say(map[string]any{"feature": "connect", "ok": false, "note": err.Error()})
		os.Exit(1)
	}
	if options.Hold {
		go t.tool(ctx, "slow", common.Slow)
		time.Sleep(200 * time.Millisecond)
		common.Say(map[string]any{"hold": true})
		select {}
	}
	common.Agreed(t.InitializeResult().ProtocolVersion)
	options.Run("connect", func(context.Context) error { return nil })
	t.features()
	t.Close()
	if isURL() {
		return
	}
	options.Run("in-flight", inFlight)
	options.Run("kill", killed)
}
