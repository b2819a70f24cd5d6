// mark3labs/mcp-go as a client, on its stdio transport.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	common "interop/go_common"
)

var (
	options = common.ClientFlags()
	check   = common.Check
)

// tries is one connection, and what its handlers heard.
type tries struct {
	*client.Client
	mu    sync.Mutex
	heard []mcp.JSONRPCNotification
}

func (*tries) CreateMessage(context.Context, mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
	message := mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: mcp.NewTextContent(common.Answer)}
	return &mcp.CreateMessageResult{SamplingMessage: message, Model: "none"}, nil
}

func (*tries) Elicit(_ context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	form := common.CoffeeForm
	if strings.Contains(fmt.Sprint(req.Params.RequestedSchema), "right") {
		form = map[string]any{"right": true}
	}
	response := mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: form}
	return &mcp.ElicitationResult{ElicitationResponse: response}, nil
}

func (*tries) ListRoots(context.Context, mcp.ListRootsRequest) (*mcp.ListRootsResult, error) {
	return &mcp.ListRootsResult{Roots: []mcp.Root{{URI: common.Root, Name: "project"}}}, nil
}

func connect(ctx context.Context) (*tries, error) {
	t := &tries{}
	stdio := transport.NewStdioWithOptions(options.Server[0], nil, options.Server[1:], transport.WithCommandStderrWriter(os.Stderr))
	with := []client.ClientOption{client.WithSamplingHandler(t), client.WithElicitationHandler(t), client.WithRootsHandler(t)}
	if options.Mode == "legacy" {
		with = append(with, client.WithLegacyProtocolOnly())
	}
	t.Client = client.NewClient(stdio, with...)
	// The context of Start is the process's: it must outlive the deadline of a feature.
	if err := t.Start(context.Background()); err != nil {
		return nil, err
	}
	t.OnNotification(func(notification mcp.JSONRPCNotification) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.heard = append(t.heard, notification)
	})
	request := mcp.InitializeRequest{}
	request.Params.ClientInfo = mcp.Implementation{Name: "mcp-go", Version: "1.0.0"}
	if _, err := t.Initialize(ctx, request); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *tries) modern() bool { return t.ProtocolVersion() >= "2026-07-28" }

// got are the parameters of each notification of a method.
func (t *tries) got(method string) (found []map[string]any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, one := range t.heard {
		if one.Method == method {
			found = append(found, one.Params.AdditionalFields)
		}
	}
	return found
}

func (t *tries) call(ctx context.Context, name string, arguments map[string]any, token any) (*mcp.CallToolResult, error) {
	request := mcp.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = name, arguments
	if token != nil {
		request.Params.Meta = &mcp.Meta{ProgressToken: token}
	}
	return t.CallTool(ctx, request)
}

func (t *tries) tool(ctx context.Context, name string, arguments map[string]any) (string, error) {
	result, err := t.call(ctx, name, arguments, nil)
	if err != nil {
		return "", err
	}
	if result.IsError {
		return "", errors.New("isError: " + text(result))
	}
	return text(result), nil
}

func text(result *mcp.CallToolResult) string {
	if len(result.Content) > 0 {
		if block, ok := result.Content[0].(mcp.TextContent); ok {
			return block.Text
		}
	}
	return fmt.Sprint(result.Content)
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
	request := mcp.ListToolsRequest{}
	for {
		page, err := t.ListToolsByPage(ctx, request)
		if err != nil {
			return nil, pages, err
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		pages++
		if page.NextCursor == "" {
			return names, pages, nil
		}
		request.Params.Cursor = page.NextCursor
	}
}

func (t *tries) read(ctx context.Context, uri string) (string, error) {
	request := mcp.ReadResourceRequest{}
	request.Params.URI = uri
	result, err := t.ReadResource(ctx, request)
	if err != nil {
		return "", err
	}
	contents, _ := result.Contents[0].(mcp.TextResourceContents)
	return contents.Text, nil
}

func (t *tries) features() {
	run := options.Run
	run("list", func(ctx context.Context) error {
		names, _, err := t.names(ctx)
		if err != nil {
			return err
		}
		return check(slices.Contains(names, "echo"), names)
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
		result, err := t.call(ctx, "add", map[string]any{"a": 2, "b": 3}, nil)
		if err != nil {
			return err
		}
		return check(fmt.Sprint(result.StructuredContent) == "map[sum:5]", result.StructuredContent)
	})
	run("error", func(ctx context.Context) error {
		result, err := t.call(ctx, "fail", map[string]any{"reason": "no beans"}, nil)
		if err != nil {
			return err
		}
		return check(result.IsError && strings.Contains(text(result), "no beans"), result)
	})
	run("progress", t.tryProgress)
	run("cancel", t.tryCancel)
	run("log", t.tryLog)
	run("resources", func(ctx context.Context) error {
		listed, err := t.ListResources(ctx, mcp.ListResourcesRequest{})
		if err != nil {
			return err
		}
		text, err := t.read(ctx, "demo://readme")
		if err != nil {
			return err
		}
		return check(listed.Resources[0].URI == "demo://readme" && strings.HasPrefix(text, "# "), text)
	})
	run("template", func(ctx context.Context) error {
		listed, err := t.ListResourceTemplates(ctx, mcp.ListResourceTemplatesRequest{})
		if err != nil {
			return err
		}
		text, err := t.read(ctx, "weather://Bern/today")
		if err != nil {
			return err
		}
		return check(listed.ResourceTemplates[0].URITemplate.Raw() == "weather://{city}/today" && strings.Contains(text, "Bern: sunny"), text)
	})
	run("subscribe", t.trySubscribe)
	run("prompts", func(ctx context.Context) error {
		listed, err := t.ListPrompts(ctx, mcp.ListPromptsRequest{})
		if err != nil {
			return err
		}
		request := mcp.GetPromptRequest{}
		request.Params.Name = "greet"
		request.Params.Arguments = map[string]string{"name": "Ada", "language": "Dutch"}
		result, err := t.GetPrompt(ctx, request)
		if err != nil {
			return err
		}
		first, _ := result.Messages[0].Content.(mcp.TextContent)
		return check(len(listed.Prompts) == 2 && first.Text == "Greet Ada in Dutch.", result)
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
	run("mib10", func(ctx context.Context) error { return t.echo(ctx, strings.Repeat("x", 10<<20)) })
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

func (t *tries) tryProgress(ctx context.Context) error {
	result, err := t.call(ctx, "slow", map[string]any{"steps": 5, "step_ms": 100}, "slow")
	if err != nil {
		return err
	}
	if err := common.Until(ctx, func() bool { return len(t.got("notifications/progress")) >= 3 }); err != nil {
		return err
	}
	last := -1.0
	for _, report := range t.got("notifications/progress") {
		at, _ := report["progress"].(float64)
		if at <= last {
			return fmt.Errorf("%v after %v", at, last)
		}
		last = at
	}
	return check(text(result) == "done after 5 steps", text(result))
}

func (t *tries) tryCancel(ctx context.Context) error {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	before := len(t.got("notifications/progress"))
	ended := make(chan error, 1)
	go func() {
		_, err := t.call(call, "slow", map[string]any{"steps": 200, "step_ms": 50}, "cancel")
		ended <- err
	}()
	if err := common.Until(ctx, func() bool { return len(t.got("notifications/progress")) > before }); err != nil {
		return err
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the call ended with %v", err)
	}
	return t.echo(ctx, "still here")
}

func (t *tries) tryLog(ctx context.Context) error {
	request := mcp.SetLevelRequest{}
	request.Params.Level = mcp.LoggingLevelDebug
	if err := t.SetLevel(ctx, request); err != nil {
		return err
	}
	if _, err := t.tool(ctx, "log", map[string]any{"level": "warning", "message": "careful"}); err != nil {
		return err
	}
	return common.Until(ctx, func() bool {
		lines := t.got("notifications/message")
		return len(lines) > 0 && lines[0]["level"] == "warning" && lines[0]["data"] == "careful"
	})
}

// listen opens a stream of the modern era, and waits until the server has acknowledged it.
func (t *tries) listen(ctx context.Context, filter mcp.SubscriptionFilter) (func(), error) {
	before := len(t.got("notifications/subscriptions/acknowledged"))
	stop, err := t.ListenAsync(ctx, filter, nil)
	if err != nil {
		return nil, err
	}
	return stop, common.Until(ctx, func() bool { return len(t.got("notifications/subscriptions/acknowledged")) > before })
}

func (t *tries) trySubscribe(ctx context.Context) error {
	uri := "demo://touched"
	if t.modern() {
		stop, err := t.listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
		if err != nil {
			return err
		}
		defer stop()
	} else {
		request := mcp.SubscribeRequest{}
		request.Params.URI = uri
		if err := t.Subscribe(ctx, request); err != nil {
			return err
		}
	}
	if _, err := t.tool(ctx, "touch", nil); err != nil {
		return err
	}
	return common.Until(ctx, func() bool { return len(t.got("notifications/resources/updated")) > 0 })
}

func (t *tries) tryCompletion(ctx context.Context) error {
	complete := func(ref any, name, value string) (string, error) {
		request := mcp.CompleteRequest{}
		request.Params.Ref, request.Params.Argument = ref, mcp.CompleteArgument{Name: name, Value: value}
		result, err := t.Complete(ctx, request)
		if err != nil {
			return "", err
		}
		return strings.Join(result.Completion.Values, " "), nil
	}
	got, err := complete(mcp.PromptReference{Type: "ref/prompt", Name: "greet"}, "language", "Ge")
	if err := same(err, got, "German"); err != nil {
		return err
	}
	got, err = complete(mcp.ResourceReference{Type: "ref/resource", URI: "weather://{city}/today"}, "city", "be")
	return same(err, got, "Berlin Bern")
}

func (t *tries) tryChanged(ctx context.Context) error {
	if t.modern() {
		stop, err := t.listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true})
		if err != nil {
			return err
		}
		defer stop()
	}
	if _, err := t.tool(ctx, "add_tool", map[string]any{"name": "later", "says": "here I am"}); err != nil {
		return err
	}
	if err := common.Until(ctx, func() bool { return len(t.got("notifications/tools/list_changed")) > 0 }); err != nil {
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
	ended := make(chan error)
	for range 3 {
		go func() {
			_, err := t.tool(ctx, "slow", common.Slow)
			ended <- err
		}()
	}
	time.Sleep(200 * time.Millisecond)
	ours := common.Since(before)
	closed := make(chan error, 1)
	go func() { closed <- t.Close() }()
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
	common.Agreed(t.ProtocolVersion())
	options.Run("connect", func(context.Context) error { return nil })
	t.features()
	t.Close()
	options.Run("in-flight", inFlight)
	options.Run("kill", killed)
}
