//! The arguments of `allclear webhook`.

use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::cli::answer::Format;
use notices::notice::Kind;

const TEST_HELP: &str = "\
A test has the type webhook.test, a member \"test\": true and the header allclear-test: true, so that a receiver does not act on it. It is \
sent from here, through the same guard of addresses, with the same signature and limits as an event.

Exit codes: 0 taken (2xx), 1 not, 2 arguments refused, or a receiver that could not tell a test.";

const RESEND_HELP: &str = "\
It writes the annotation allclear.dev/resend on what they are about. The running allclear sends the deliveries again, with the webhook-id and \
the bytes that they had, so a receiver that has one already can drop it. What a receiver has taken is not kept, and cannot be sent again.

Exit codes: 0 asked for, 1 nothing to send again, or not all of it, 2 arguments refused.";

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookAction {
    /// Show each receiver, the events it gets, what is on its way to it, and what was given up
    List {
        /// Ask a running allclear, by the address of its status page; it knows the last result and the next attempt
        #[arg(long, value_name = "URL", value_parser = super::server)]
        server: Option<url::Url>,
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, value_name = "NAMESPACE", conflicts_with = "server")]
        ledger_namespace: Option<String>,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Send a marked test event to a receiver of the configuration that is here, and show what it answers
    #[command(after_help = TEST_HELP)]
    Test {
        /// The receiver, by its name [default: each that can tell a test from an event]
        receiver: Option<String>,
        /// Call receivers that cannot tell a test too, as by GET or of the format form: they get what they always get, and may start what they always start
        #[arg(long)]
        unmarked: bool,
        /// How to print it
        #[arg(short, long, value_enum, default_value = "table")]
        output: Format,
    },
    /// Have the running allclear send again what it gave up, with your own right to patch what it is about
    #[command(after_help = RESEND_HELP)]
    Resend {
        /// What it is about, as web, shop/web, statefulset/db, pipeline/shop/web or repo/platform/infra
        #[arg(required_unless_present = "all", conflicts_with = "all")]
        name: Option<String>,
        /// Its namespace [default: that of the kubeconfig's context; with --all: all]
        #[arg(short, long)]
        namespace: Option<String>,
        /// Where the controller keeps its records [default: the configured ledger.namespace, or allclear]
        #[arg(long, value_name = "NAMESPACE")]
        ledger_namespace: Option<String>,
        /// For every workload, Pipeline and Repo
        #[arg(long)]
        all: bool,
        /// Only for this receiver
        #[arg(long, value_name = "NAME")]
        receiver: Option<String>,
        /// Only this event
        #[arg(long, value_name = "EVENT", value_parser = event())]
        event: Option<Kind>,
        /// Also what still waits for its next attempt
        #[arg(long)]
        now: bool,
    },
}

fn event() -> impl TypedValueParser<Value = Kind> {
    let names = Kind::ALL.into_iter().map(Kind::name);
    PossibleValuesParser::new(names).try_map(|name| Kind::named(&name).ok_or("not an event"))
}
