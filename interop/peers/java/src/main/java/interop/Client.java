package interop;

import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema;
import io.modelcontextprotocol.spec.McpSchema.CallToolRequest;
import io.modelcontextprotocol.spec.McpSchema.CallToolResult;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import reactor.core.publisher.Flux;

/** The official Java SDK as a client, on its stdio transport. */
public final class Client {
    private static final String UNICODE =
            "π ☕ 日本語 👩\u200d👩\u200d👧 e\u0301 \u2028 \u2029 \u0085 \0 \"\\ \t\r\n end";
    private static final int MOST = 64 << 20;
    private static final ExecutorService THREADS = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task);
        thread.setDaemon(true);
        return thread;
    });

    /** What the SDK does not have. */
    private static final class Missing extends RuntimeException {
        Missing(String what) {
            super(what);
        }
    }

    private interface Feature {
        void attempt() throws Exception;
    }

    private static List<String> command = List.of();
    private static Set<String> only = Set.of();

    private final List<Double> progress = new CopyOnWriteArrayList<>();
    private final List<McpSchema.LoggingMessageNotification> logs = new CopyOnWriteArrayList<>();
    private final AtomicInteger changed = new AtomicInteger();
    private final AtomicInteger updated = new AtomicInteger();
    private final Set<Long> servers;
    private final McpSyncClient client;
    private final String revision;

    private Client() {
        Set<Long> before = children();
        client = McpClient.sync(transport())
                .requestTimeout(Duration.ofSeconds(60))
                .initializationTimeout(Duration.ofSeconds(20))
                .clientInfo(McpSchema.Implementation.builder("java", "1.0.0").build())
                .capabilities(McpSchema.ClientCapabilities.builder().roots(true).sampling().elicitation().build())
                .roots(McpSchema.Root.builder("file:///interop/project").name("project").build())
                .sampling(request -> McpSchema.CreateMessageResult.builder(McpSchema.Role.ASSISTANT, "Lisbon", "none").build())
                .elicitation(request -> McpSchema.ElicitResult.builder(McpSchema.ElicitResult.Action.ACCEPT)
                        .content(String.valueOf(request.requestedSchema()).contains("right")
                                ? Map.of("right", true) : Map.of("size", "large", "milk", true, "name", "Ada"))
                        .build())
                .toolsChangeConsumer(tools -> changed.incrementAndGet())
                .resourcesUpdateConsumer(contents -> updated.incrementAndGet())
                .loggingConsumer(logs::add)
                .progressConsumer(report -> progress.add(report.progress()))
                .build();
        revision = client.initialize().protocolVersion();
        servers = children();
        servers.removeAll(before);
    }

    /** Whether the server runs already: then its process is not ours to end. */
    private static boolean isUrl() {
        return command.get(0).startsWith("http://");
    }

    private static McpClientTransport transport() {
        if (isUrl()) {
            return HttpClientStreamableHttpTransport.builder(command.get(0)).build();
        }
        var parameters = new ServerParameters.Builder(command.get(0)).args(command.subList(1, command.size())).build();
        var transport = new StdioClientTransport(parameters, McpJsonDefaults.getMapper(), MOST);
        transport.setStdErrorHandler(System.err::println);
        return transport;
    }

    public static void main(String[] args) throws Exception {
        int dashes = Arrays.asList(args).indexOf("--");
        List<String> options = Arrays.asList(args).subList(0, dashes);
        command = Arrays.asList(args).subList(dashes + 1, args.length);
        if (options.contains("--only")) {
            only = Set.of(options.get(options.indexOf("--only") + 1).split(","));
        }
        Client client;
        try {
            client = new Client();
        } catch (RuntimeException error) {
            say("feature", "connect", "ok", false, "note", String.valueOf(error));
            System.exit(1);
            return;
        }
        if (options.contains("--hold")) {
            THREADS.submit(client::slow);
            Thread.sleep(300);
            say("hold", true);
            Thread.sleep(Long.MAX_VALUE);
        }
        say("agreed", client.revision, "era", "legacy");
        run("connect", () -> { });
        client.features();
        client.client.closeGracefully();
        if (isUrl()) {
            System.exit(0);
        }
        run("in-flight", Client::inFlight);
        run("kill", Client::killed);
        System.exit(0);
    }

    private static void say(Object... keysAndValues) {
        Map<String, Object> line = new LinkedHashMap<>();
        for (int at = 0; at < keysAndValues.length; at += 2) {
            line.put((String) keysAndValues[at], keysAndValues[at + 1]);
        }
        try {
            System.out.println(McpJsonDefaults.getMapper().writeValueAsString(line));
        } catch (IOException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void run(String name, Feature feature) {
        // Over HTTP a request may have 4 MiB.
        if (!only.isEmpty() && !only.contains(name) || isUrl() && name.equals("mib10")) {
            return;
        }
        Boolean ok = true;
        String note = "";
        try {
            THREADS.submit(() -> {
                feature.attempt();
                return null;
            }).get(45, TimeUnit.SECONDS);
        } catch (ExecutionException error) {
            ok = error.getCause() instanceof Missing ? null : Boolean.FALSE;
            note = ok == null ? error.getCause().getMessage() : String.valueOf(error.getCause());
        } catch (TimeoutException error) {
            ok = false;
            note = "nothing within 45 s";
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
        say("feature", name, "ok", ok, "note", note.substring(0, Math.min(400, note.length())));
    }

    private static void check(boolean holds, Object what) {
        if (!holds) {
            throw new IllegalStateException(String.valueOf(what));
        }
    }

    private static void until(BooleanSupplier condition) throws InterruptedException {
        while (!condition.getAsBoolean()) {
            Thread.sleep(10);
        }
    }

    private static Set<Long> children() {
        return ProcessHandle.current().children().map(ProcessHandle::pid).collect(Collectors.toSet());
    }

    private CallToolResult call(String name, Map<String, Object> arguments) {
        return client.callTool(CallToolRequest.builder(name).arguments(arguments).build());
    }

    private static String text(CallToolResult result) {
        return ((McpSchema.TextContent) result.content().get(0)).text();
    }

    private void says(String name, Map<String, Object> arguments, String wanted) {
        String said = text(call(name, arguments));
        check(said.equals(wanted), said.substring(0, Math.min(100, said.length())));
    }

    private void echo(String text) {
        says("echo", Map.of("text", text), text);
    }

    private CallToolResult slow() {
        return call("slow", Map.of("steps", 600, "step_ms", 100));
    }

    private List<String> tools() {
        List<String> names = new ArrayList<>();
        String cursor = null;
        do {
            var page = client.listTools(cursor);
            page.tools().forEach(tool -> names.add(tool.name()));
            cursor = page.nextCursor();
        } while (cursor != null);
        return names;
    }

    private String read(String uri) {
        var contents = client.readResource(McpSchema.ReadResourceRequest.builder(uri).build()).contents();
        return ((McpSchema.TextResourceContents) contents.get(0)).text();
    }

    private List<String> complete(McpSchema.CompleteReference reference, String name, String start) {
        var argument = new McpSchema.CompleteRequest.CompleteArgument(name, start);
        return client.completeCompletion(new McpSchema.CompleteRequest(reference, argument)).completion().values();
    }

    private void features() {
        run("list", () -> check(tools().contains("echo"), tools()));
        run("paging", () -> {
            check(client.listTools(null).nextCursor() != null, "one page only");
            check(tools().size() >= 14, tools());
        });
        run("call", () -> echo("hello"));
        run("structured", () -> {
            var result = call("add", Map.of("a", 2, "b", 3)).structuredContent();
            check(String.valueOf(result).equals("{sum=5}"), result);
        });
        run("error", () -> {
            var result = call("fail", Map.of("reason", "no beans"));
            check(result.isError() && text(result).contains("no beans"), result);
        });
        run("progress", () -> {
            client.callTool(CallToolRequest.builder("slow").arguments(Map.of("steps", 5, "step_ms", 100)).progressToken("slow").build());
            until(() -> progress.size() >= 3);
            check(progress.stream().sorted().toList().equals(progress), progress);
        });
        run("cancel", () -> {
            throw new Missing("the SDK has no notifications/cancelled");
        });
        run("log", () -> {
            client.setLoggingLevel(McpSchema.LoggingLevel.DEBUG);
            call("log", Map.of("level", "warning", "message", "careful"));
            until(() -> !logs.isEmpty());
            check(logs.get(0).level() == McpSchema.LoggingLevel.WARNING && logs.get(0).data().equals("careful"), logs);
        });
        run("resources", () -> {
            check(client.listResources().resources().get(0).uri().equals("demo://readme"), "not listed");
            check(read("demo://readme").startsWith("# "), read("demo://readme"));
        });
        run("template", () -> {
            var template = client.listResourceTemplates().resourceTemplates().get(0);
            check(template.uriTemplate().equals("weather://{city}/today"), template);
            check(read("weather://Bern/today").contains("Bern: sunny"), read("weather://Bern/today"));
        });
        run("subscribe", () -> {
            client.subscribeResource(McpSchema.SubscribeRequest.builder("demo://touched").build());
            call("touch", Map.of());
            until(() -> updated.get() > 0);
            client.unsubscribeResource(McpSchema.UnsubscribeRequest.builder("demo://touched").build());
        });
        run("prompts", () -> {
            check(client.listPrompts().prompts().size() == 2, client.listPrompts());
            var result = client.getPrompt(new McpSchema.GetPromptRequest("greet", Map.of("name", "Ada", "language", "Dutch")));
            var first = (McpSchema.TextContent) result.messages().get(0).content();
            check(first.text().equals("Greet Ada in Dutch."), result);
        });
        run("completion", () -> {
            var languages = complete(new McpSchema.PromptReference("greet"), "language", "Ge");
            check(languages.equals(List.of("German")), languages);
            var cities = complete(new McpSchema.ResourceReference("weather://{city}/today"), "city", "be");
            check(cities.equals(List.of("Berlin", "Bern")), cities);
        });
        run("ask", () -> says("ask", Map.of(), "one large coffee, with milk, for Ada"));
        run("sample", () -> says("sample", Map.of("prompt", "Capital of Portugal?"), "Lisbon"));
        run("roots", () -> says("roots", Map.of(), "file:///interop/project"));
        run("changed", () -> {
            call("add_tool", Map.of("name", "later", "says", "here I am"));
            until(() -> changed.get() > 0);
            check(tools().contains("later"), tools());
            says("later", Map.of(), "here I am");
        });
        run("unicode", () -> echo(UNICODE));
        run("mib1", () -> echo("x".repeat(1 << 20)));
        run("mib10", () -> echo("x".repeat(10 << 20)));
        run("hundred", Client::hundred);
    }

    /** By the asynchronous client: the other one, used by many threads, fails to enqueue some messages. */
    private static void hundred() {
        var client = McpClient.async(transport()).requestTimeout(Duration.ofSeconds(15)).build();
        client.initialize().block();
        var answers = Flux.range(0, 100)
                .flatMap(number -> client.callTool(CallToolRequest.builder("echo").arguments(Map.of("text", "call " + number)).build())
                        .map(result -> Map.entry("call " + number, text(result))))
                .collectList().block();
        check(answers.size() == 100 && answers.stream().allMatch(pair -> pair.getKey().equals(pair.getValue())), answers);
        client.closeGracefully().block();
    }

    private static void gone(Set<Long> pids) throws InterruptedException {
        until(() -> pids.stream().noneMatch(pid -> ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false)));
    }

    private static void inFlight() throws Exception {
        Client other = new Client();
        List<Future<CallToolResult>> calls = IntStream.range(0, 3).mapToObj(number -> THREADS.submit(other::slow)).toList();
        Thread.sleep(300);
        other.client.closeGracefully();
        gone(other.servers);
        for (var call : calls) {
            failed(call);
        }
    }

    private static void killed() throws Exception {
        Client other = new Client();
        var call = THREADS.submit(other::slow);
        Thread.sleep(300);
        other.servers.forEach(pid -> ProcessHandle.of(pid).ifPresent(ProcessHandle::destroyForcibly));
        failed(call);
    }

    private static void failed(Future<CallToolResult> call) throws Exception {
        try {
            check(false, "the call answered " + call.get(10, TimeUnit.SECONDS));
        } catch (ExecutionException error) {
            System.err.println("the call failed: " + error.getCause());
        } catch (TimeoutException error) {
            check(false, "the call in flight still waits after 10 s");
        }
    }
}
