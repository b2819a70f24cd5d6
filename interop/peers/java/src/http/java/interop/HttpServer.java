package interop;

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import java.io.File;
import org.apache.catalina.startup.Tomcat;

/** The Java SDK as a server over Streamable HTTP, in a Tomcat: `HttpServer PORT`. */
public final class HttpServer {
    private HttpServer() {}

    public static void main(String[] args) throws Exception {
        var transport = HttpServletStreamableServerTransportProvider.builder()
                .jsonMapper(McpJsonDefaults.getMapper())
                .mcpEndpoint("/mcp")
                .build();
        new Server().serve(McpServer.sync(transport), 0);
        var tomcat = new Tomcat();
        File base = File.createTempFile("tomcat", "");
        if (!base.delete() || !base.mkdir()) {
            throw new IllegalStateException("no folder for Tomcat");
        }
        base.deleteOnExit();
        tomcat.setBaseDir(base.getPath());
        tomcat.setHostname("127.0.0.1");
        tomcat.setPort(Integer.parseInt(args[0]));
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        var context = tomcat.addContext("", base.getPath());
        var servlet = Tomcat.addServlet(context, "mcp", transport);
        servlet.setAsyncSupported(true);
        servlet.setLoadOnStartup(1);
        context.addServletMappingDecoded("/*", "mcp");
        tomcat.start();
        tomcat.getServer().await();
    }
}
