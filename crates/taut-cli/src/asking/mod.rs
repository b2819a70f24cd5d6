//! Questions of a server (forms, pages, sampling, roots), and who answers them.
//!
//! First the file of `--answer`, then the person at the terminal; otherwise the question is declined and
//! reported on stderr. Declares to the server only what one of them can answer. Must not know which
//! command is running. ELI-01, ELI-09, SAM-09, ROO-05.

mod dialogue;
mod model;
mod page;
mod roots;

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use taut::types::{CreateMessageParams, CreateMessageResult, ElicitForm, ElicitResult, ElicitUrl};
use taut::{
    ClientBuilder, Reject, Root,
    client::{ClientEvent, RequestContext},
};

use crate::answers::{self, Answers, Said};
use crate::desk::Desk;
use crate::forms::Form;
use crate::gate::escape;
use crate::output::{BOLD, CYAN, Output, YELLOW};
use crate::problem::{Exit, Problem};
use crate::session::hear;

/// What every command that starts a server takes for the server's questions.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct AskOptions {
    /// Offer this folder to the server as a root; can be repeated.
    #[arg(long, value_name = "DIR", help_heading = "The server")]
    pub(crate) root: Vec<PathBuf>,
    /// Answer the server's questions from this file (- for stdin): a list or a map, YAML or JSON.
    #[arg(long, value_name = "FILE", help_heading = "The server")]
    pub(crate) answer: Option<PathBuf>,
    /// Whether questions are offered that nobody can answer here, and are declined: a server may leave out tools
    /// that need them, and a list has to be the same in a pipe as on a terminal.
    #[arg(skip)]
    pub(crate) offer_all: bool,
}

/// Where a map has the answer to a page, and an example of one.
const CONSENT: (&str, &str) = (answers::URL, "accept");

/// The same for a question to a model.
const SPEECH: (&str, &str) = (answers::SAMPLING, "\"what the model says\"");

/// What the file of `--answer` came to for one question.
enum Settled<T> {
    Said(Said<T>),
    /// It does not fit, and nobody else is there.
    Unfit,
    /// It says nothing that can be used, and somebody may be asked.
    Open,
}

/// Who answers a server.
#[derive(Clone)]
pub(crate) struct Host(Arc<Shared>);

struct Shared {
    output: Output,
    answers: Option<Mutex<Answers>>,
    /// Whether a person is at the terminal.
    person: bool,
    desk: OnceLock<Desk>,
    history: Option<PathBuf>,
    roots: Vec<Root>,
    offer_all: bool,
    unanswered: AtomicBool,
}

impl Host {
    /// Reads the file of `--answer`, and finds out whether a person is at the terminal.
    pub(crate) fn new(output: &Output, options: &AskOptions) -> Result<Self, Problem> {
        let person = io::stdin().is_terminal() && io::stderr().is_terminal();
        Self::with(output, options, person, None)
    }

    /// As [`new`](Self::new), for a caller that knows whether a person is there; with a history file.
    pub(crate) fn with(
        output: &Output,
        options: &AskOptions,
        person: bool,
        history: Option<PathBuf>,
    ) -> Result<Self, Problem> {
        let answers = options.answer.as_deref().map(Answers::load).transpose()?.map(Mutex::new);
        let roots = options.root.iter().map(|dir| roots::root(dir)).collect::<Result<_, _>>()?;
        Ok(Self(Arc::new(Shared {
            output: output.clone(),
            answers,
            person,
            desk: OnceLock::new(),
            history,
            roots,
            offer_all: options.offer_all,
            unanswered: AtomicBool::new(false),
        })))
    }

    /// Makes a client answer what can be answered here, and declare nothing else.
    pub(crate) fn attach(&self, mut builder: ClientBuilder) -> ClientBuilder {
        let has = |what: fn(&Answers) -> bool| self.answers().is_some_and(|answers| what(&answers));
        let host = self.clone();
        // Always: a form can be declined.
        builder = builder.on_elicit(move |form, asking| {
            let host = host.clone();
            async move { host.form(form, asking).await }
        });
        if self.0.person || self.0.offer_all || has(Answers::has_consent) {
            let host = self.clone();
            builder = builder.on_elicit_url(move |page, asking| {
                let host = host.clone();
                async move { host.page(page, asking).await }
            });
        }
        if self.0.person || self.0.offer_all || has(Answers::has_speech) {
            let host = self.clone();
            builder = builder.on_sample(move |question, asking| {
                let host = host.clone();
                async move { host.speech(question, asking).await }
            });
        }
        if !self.0.roots.is_empty() {
            builder = builder.roots(self.0.roots.clone());
        }
        builder
    }

    /// A hook for events: reports when the server asks for something that was not offered, which the
    /// library refuses.
    pub(crate) fn hearing(&self) -> impl Fn(&ClientEvent<'_>) + Send + Sync + 'static {
        let host = self.clone();
        move |event| {
            hear(&host.0.output, event);
            let ClientEvent::Refused { method } = event else { return };
            let (asks, (key, example)) = match *method {
                // Forms are always answered, if only with "no".
                "elicitation/create" => ("asks you to visit a page", CONSENT),
                "sampling/createMessage" => ("asks a model", SPEECH),
                _ => return,
            };
            host.note(&host.0.output.err.paint(BOLD, format!("the server {asks}")));
            host.decline(key, example);
        }
    }

    /// The exit code: [`Exit::Refused`] if a question was left unanswered since the last call of this.
    pub(crate) fn judge(&self, exit: Exit) -> Exit {
        let unanswered = self.0.unanswered.swap(false, Ordering::SeqCst);
        if unanswered && exit == Exit::Worked { Exit::Refused } else { exit }
    }

    /// What is not offered to the server because nobody is here to answer it; a server may leave out
    /// tools that need it.
    pub(crate) fn unoffered(&self) -> Option<String> {
        if self.0.person || self.0.offer_all {
            return None;
        }
        let has = |what: fn(&Answers) -> bool| self.answers().is_some_and(|answers| what(&answers));
        let (what, it) = match (has(Answers::has_speech), has(Answers::has_consent)) {
            (true, true) => return None,
            (false, true) => ("sampling was", "it"),
            (true, false) => ("elicitation by a page was", "it"),
            (false, false) => ("sampling and elicitation by a page were", "them"),
        };
        Some(format!(
            "{what} not offered to the server, because nobody can answer here; it may leave out tools that \
             need {it}"
        ))
    }

    /// A tool that is not there may be one that the server left out.
    pub(crate) fn explain(&self, problem: Problem) -> Problem {
        match (problem, self.unoffered()) {
            (Problem::Usage { what, next }, Some(words))
                if what.starts_with("the server has no tool") && !what.contains("did you mean") =>
            {
                let next =
                    next.map(|next| format!("{next}; --answer FILE and --root DIR offer more"));
                Problem::Usage { what: format!("{what}\n{words}"), next }
            }
            (problem, _) => problem,
        }
    }

    /// The line editor.
    pub(crate) fn desk(&self) -> &Desk {
        self.0.desk.get_or_init(|| Desk::open(self.0.output.screen.clone(), self.0.history.clone()))
    }

    fn answers(&self) -> Option<MutexGuard<'_, Answers>> {
        let answers = self.0.answers.as_ref()?;
        Some(answers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn form(&self, asked: ElicitForm, asking: RequestContext) -> ElicitResult {
        let form = Form::of(&asked.requested_schema);
        let said = self.answers().and_then(|mut answers| answers.form(&form));
        match self.settled(said, || form.example().to_string()) {
            Settled::Said(Said::Answer(content)) => return ElicitResult::accept(content),
            Settled::Said(Said::Decline) | Settled::Unfit => return ElicitResult::decline(),
            Settled::Said(Said::Cancel) => return ElicitResult::cancel(),
            Settled::Open => {}
        }
        if self.0.person {
            let question = dialogue::fill_in(self, &asking, &asked.message, &form);
            return self.put(question, &asking).await.unwrap_or_else(ElicitResult::cancel);
        }
        self.heading(&asking, "asks", &asked.message);
        for line in form.lines() {
            self.say(&format!("  {line}"));
        }
        self.decline("", &form.example().to_string());
        ElicitResult::decline()
    }

    async fn page(&self, asked: ElicitUrl, asking: RequestContext) -> ElicitResult {
        let said = self.answers().and_then(|mut answers| answers.page());
        match self.settled(said, || CONSENT.1.to_owned()) {
            // ELI-12: to agree is not to have been there, and nothing is opened.
            Settled::Said(Said::Answer(())) => {
                return ElicitResult::new(taut::types::ElicitAction::Accept);
            }
            Settled::Said(Said::Decline) | Settled::Unfit => return ElicitResult::decline(),
            Settled::Said(Said::Cancel) => return ElicitResult::cancel(),
            Settled::Open => {}
        }
        if self.0.person {
            let question = page::visit(self, &asking, &asked);
            return self.put(question, &asking).await.unwrap_or_else(ElicitResult::cancel);
        }
        self.heading(&asking, "asks you to visit a page", &asked.message);
        self.say(&format!("  {}", asked.url));
        self.decline(CONSENT.0, CONSENT.1);
        ElicitResult::decline()
    }

    async fn speech(
        &self,
        asked: CreateMessageParams,
        asking: RequestContext,
    ) -> Result<CreateMessageResult, Reject> {
        let said = self.answers().and_then(|mut answers| answers.speech());
        match self.settled(said, || SPEECH.1.to_owned()) {
            Settled::Said(Said::Answer(speech)) => {
                let model = speech.model.as_deref().unwrap_or("a file of answers");
                return Ok(model::spoken(&speech.text, model));
            }
            Settled::Said(Said::Decline | Said::Cancel) | Settled::Unfit => {
                return Err(Reject::by_user());
            }
            Settled::Open => {}
        }
        if self.0.person {
            let question = model::speak(self, &asking, &asked);
            return self.put(question, &asking).await.unwrap_or_else(|| Err(Reject::by_user()));
        }
        self.heading(&asking, "asks a model", "");
        model::lines(&asked).iter().for_each(|line| self.say(&format!("  {line}")));
        self.decline(SPEECH.0, SPEECH.1);
        Err(Reject::by_user())
    }

    /// What the file answers. If the answer does not fit, the reason is shown and a person is asked; without
    /// a person the question is declined, and an example of an answer is shown.
    fn settled<T>(
        &self,
        said: Option<Result<Said<T>, String>>,
        example: impl FnOnce() -> String,
    ) -> Settled<T> {
        let why = match said {
            None => return Settled::Open,
            Some(Ok(said)) => return Settled::Said(said),
            Some(Err(why)) => why,
        };
        let err = self.0.output.err;
        let declined = if self.0.person { "" } else { "; the question is declined" };
        let words = format!("the answer in the file does not fit: {why}{declined}");
        self.note(&err.paint(YELLOW, err.line(&words)));
        if self.0.person {
            return Settled::Open;
        }
        self.0.unanswered.store(true, Ordering::SeqCst);
        let example = example();
        let example = if self.has_map() { example } else { format!("[{example}]") };
        self.note(&format!("{} in the file: {}", err.paint(CYAN, "  try:"), err.line(&example)));
        Settled::Unfit
    }

    /// Asks the person, until there is an answer or the server withdraws the question.
    async fn put<T>(
        &self,
        question: impl Future<Output = T>,
        asking: &RequestContext,
    ) -> Option<T> {
        let _turn = self.desk().turn().await;
        tokio::select! {
            answer = question => Some(answer),
            () = asking.cancelled() => {
                self.note(&self.0.output.err.paint(
                    YELLOW,
                    "the server no longer wants an answer; press Enter",
                ));
                None
            }
        }
    }

    /// Says who asks, and for what. The server chooses its name itself, so it proves nothing (MET-04).
    fn heading(&self, asking: &RequestContext, does: &str, message: &str) {
        let client = asking.client();
        let name = client.as_ref().and_then(|client| client.server_info());
        let name = name.map_or("the server", |info| info.name.as_str());
        let err = &self.0.output.err;
        let words = format!("{} {does}:", escape::line(name));
        let first = err.paint(BOLD, words);
        if message.contains('\n') {
            self.note(&first);
            message.lines().for_each(|line| self.say(&format!("  {line}")));
        } else {
            self.note(format!("{first} {}", escape::line(message)).trim_end());
        }
    }

    /// Whether the file of `--answer` is a map.
    fn has_map(&self) -> bool {
        self.answers().is_some_and(|answers| answers.is_map())
    }

    /// Reports that the question was declined, and what would have answered it: `example` in a list, under `key`
    /// in a map.
    fn decline(&self, key: &str, example: &str) {
        self.0.unanswered.store(true, Ordering::SeqCst);
        let err = &self.0.output.err;
        self.note(&err.paint(YELLOW, "declined: nobody is here to answer"));
        let example = escape::line(example);
        let words = match &self.0.answers {
            None => format!("on a terminal, or with --answer FILE and in it: [{example}]"),
            Some(_) if self.has_map() => format!("add to the map in the file: {key}: {example}"),
            // The answers before it are used up.
            Some(_) => format!("append to the list in the file: {example}"),
        };
        self.note(&format!("{} {words}", err.paint(CYAN, "  try:")));
    }

    /// Shows one line that the server wrote.
    fn say(&self, line: &str) {
        let indent = line.len() - line.trim_start().len();
        self.note(&format!("{}{}", &line[..indent], escape::line(line.trim_start())));
    }

    fn note(&self, text: &str) {
        self.0.output.ask(text);
    }
}
