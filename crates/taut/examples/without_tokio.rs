//! The pure core on plain blocking I/O: an echo server in JSON-RPC, with no runtime at all. Try it:
//!
//! ```sh
//! echo '{"jsonrpc":"2.0","id":1,"method":"echo","params":[1,2]}' |
//!     cargo run -p taut --example without_tokio --no-default-features
//! ```

use std::io::{self, Read, Write};
use std::time::Instant;

use taut::rpc::{Config, Dialect, ErrorObject, Event, JsonBuf, Peer, PeerRequest};
use taut::wire::Decoder;

fn main() -> io::Result<()> {
    let config = Config::new(Dialect::PLAIN, true);
    let mut decoder = Decoder::new(config.limits);
    let mut peer = Peer::new(config);
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    let mut piece = [0; 8192];
    loop {
        let came = match input.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            came => came?,
        };
        decoder.push(&piece[..came]);
        if came == 0 {
            decoder.finish();
        }
        while let Some(frame) = decoder.poll_frame() {
            for event in peer.handle_frame(Instant::now(), frame) {
                // Notifications are heard and not answered; we make no calls, so no replies come.
                if let Event::Request(request) = event {
                    answer(&mut peer, request);
                }
            }
            while let Some(request) = peer.poll_request() {
                answer(&mut peer, request);
            }
            output.write_all(peer.output().bytes())?;
            let written = peer.output().len();
            peer.output().consume(written);
        }
        output.flush()?;
        if came == 0 {
            return Ok(());
        }
    }
}

fn answer(peer: &mut Peer, request: PeerRequest<'_>) {
    let PeerRequest { ticket, method, params, .. } = request;
    let result = match &*method {
        "echo" => JsonBuf::of(&params.raw()).map_err(|e| ErrorObject::internal(e.to_string())),
        _ => Err(ErrorObject::method_not_found(&method)),
    };
    peer.answer(ticket, result);
}
