//! The way to git hosts and forges: whom it connects to, whom it believes, and what it makes of answers that are too long,
//! too late or broken.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use allclear::adapters::clock::SystemClock;
use allclear::adapters::forge_http::ForgeHttp;
use allclear::adapters::heads::heads;
use bytes::Bytes;
use forge::git::{Credentials, Remote};
use forge::keeper::Keeper;
use forge::{Authorities, Http, HttpError};
use kernel::id::RepoId;
use kernel::names::destination::Purpose;
use objects::ports::Secrets;
use objects::ports::repo::Heads;
use objects::repo::spec::{Approving, Gates, Keep, Runner, Source, Spec};
use purge::ports::{PortError, Retry};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sandbox::git::GitHost;
use sandbox::http::{Action, Body, Fault, Reply, Request, Server, StandIn, When};

use crate::certificates;
use crate::webhook::Knows;

/// Long enough for an answer on loopback, short enough to wait for.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Answers every request with its path.
struct Echo;

impl StandIn for Echo {
    fn answer(&self, request: &Request) -> Reply {
        Reply::full(200, "text/plain", request.path.clone())
    }
}

async fn echo() -> Server {
    Server::start(Arc::new(Echo)).await.expect("loopback")
}

fn to(address: &str, private_hosts: &[&str]) -> ForgeHttp {
    let http = ForgeHttp::new(private_hosts.iter().map(ToString::to_string)).with_plain_http();
    http.with(Duration::from_secs(20), Arc::new(Knows(address.parse().expect("an address"))))
}

async fn get(http: &ForgeHttp, url: &str, answer_max: usize) -> Result<(u16, Bytes), HttpError> {
    let request = http::Request::get(url).body(Bytes::new()).expect("a request");
    http.send(request, None, answer_max).await.map(|answer| (answer.status().as_u16(), answer.into_body()))
}

#[tokio::test]
async fn a_private_address_is_only_for_hosts_that_the_operator_named() {
    let server = echo().await;
    let port = server.address().port();
    let named = &["git.example.com", "127.0.0.1"];
    for (address, hosts, url, refusal) in [
        ("127.0.0.1", &named[..], "http://git.example.com", None),
        ("127.0.0.1", named, "http://GIT.example.com", None),
        ("127.0.0.1", named, "http://127.0.0.1", None),
        ("127.0.0.1", &[], "http://git.example.com", Some("git.example.com is 127.0.0.1")),
        ("127.0.0.1", named, "http://other.example.com", Some("other.example.com is 127.0.0.1")),
        ("127.0.0.1", named, "http://sub.git.example.com", Some("sub.git.example.com is 127.0.0.1")),
        ("127.0.0.1", &[], "http://127.0.0.1", Some("127.0.0.1 is")),
        ("169.254.169.254", named, "http://git.example.com", Some("git.example.com is 169.254.169.254")),
    ] {
        let answer = get(&to(address, hosts), &format!("{url}:{port}/a"), 10).await;
        match refusal {
            None => assert_eq!(answer, Ok((200, Bytes::from("/a"))), "{url}"),
            Some(words) => {
                assert!(matches!(&answer, Err(HttpError::Refused(said)) if said.contains(words)), "{url}: {answer:?}");
            }
        }
    }
    assert_eq!(server.seen().len(), 3);
    server.stop().await;
}

#[tokio::test]
async fn nothing_is_sent_in_the_clear() {
    let server = echo().await;
    let http = ForgeHttp::new(["127.0.0.1".to_owned()]);
    let answer = get(&http, &format!("{}/a", server.url()), 10).await;
    assert!(matches!(&answer, Err(HttpError::Refused(words)) if words.contains("https")), "{answer:?}");
    assert_eq!(server.seen().len(), 0);
    server.stop().await;
}

#[tokio::test]
async fn an_answer_comes_whole_and_in_time_or_not_at_all() {
    let server = echo().await;
    let http = to("127.0.0.1", &["127.0.0.1"]).with(TIMEOUT, Arc::new(Knows([127, 0, 0, 1].into())));
    let get = async |answer_max| get(&http, &format!("{}/abc?token=secret", server.url()), answer_max).await;
    assert_eq!(get(4).await, Ok((200, Bytes::from("/abc"))), "exactly what is allowed");
    assert_eq!(get(3).await, Err(HttpError::TooLong));
    let inject = |action| server.inject(Fault::once(When::Before, action));
    inject(Action::Answer(Reply::empty(301).header("location", "/elsewhere")));
    assert_eq!(get(4).await, Ok((301, Bytes::new())), "not followed");

    let stream = |bytes: &'static [u8]| {
        let (sender, chunks) = tokio::sync::mpsc::channel(1);
        let sending = tokio::spawn(async move { while sender.send(Bytes::from_static(bytes)).await.is_ok() {} });
        (Reply::empty(200).body(Body::Stream(chunks)), sending)
    };
    let (endless, sending) = stream(&[7; 1000]);
    inject(Action::Answer(endless));
    assert_eq!(get(1_000_000).await, Err(HttpError::TooLong));
    sending.await.expect("it noticed that its reader went");

    inject(Action::Hold);
    let late = Err(HttpError::Failed("no whole answer within 500ms".to_owned()));
    assert_eq!(get(4).await, late);
    let (sender, chunks) = tokio::sync::mpsc::channel(1);
    sender.send(Bytes::from_static(b"/a")).await.expect("open");
    inject(Action::Answer(Reply::empty(200).body(Body::Stream(chunks))));
    assert_eq!(get(4).await, late, "it began and does not end");
    drop(sender);

    inject(Action::Cut);
    let Err(HttpError::Failed(words)) = get(4).await else { panic!("cut") };
    assert!(!words.contains("secret") && !words.contains("/abc"), "{words}");
    assert_eq!(server.seen().len(), 7);
    server.stop().await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_none() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        for answer in [
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        ] {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = head_and_body(&mut stream);
            stream.write_all(answer.as_bytes()).expect("sent");
        }
    });
    let http = to("127.0.0.1", &["127.0.0.1"]);
    for _ in 0..2 {
        let answer = get(&http, &url, 100).await;
        assert!(matches!(&answer, Err(HttpError::Failed(words)) if words.contains("within the answer")), "{answer:?}");
    }
    server.join().expect("no panic");
}

#[tokio::test]
async fn a_repository_behind_a_certificate_of_our_own_is_read_by_who_has_its_authority() {
    let directory = tempfile::tempdir().expect("a directory");
    certificates::make(directory.path());
    let host = Arc::new(GitHost::new().expect("a git host"));
    host.create("shop/web.git", &[]).expect("a repository");
    host.require_basic("robot", "hunter2");
    let commit = host.commit("shop/web.git", "main", &[("a.yaml", b"tag: 1.0\n")]).expect("commit");
    let server = Server::start(host as Arc<dyn StandIn>).await.expect("loopback");
    let port = encrypted(directory.path(), server.address());

    let http: Arc<dyn Http> = Arc::new(to("127.0.0.1", &["localhost", "git.example.com"]));
    let ours = Authorities(std::fs::read(directory.path().join("ca.pem")).expect("the authority").into());
    let robot = Credentials::Basic { user: "robot".to_owned(), password: "hunter2".to_owned() };
    let at = |name: &str, authorities| {
        let url = format!("https://{name}:{port}/shop/web.git");
        Remote::new(Arc::clone(&http), &url, Some(&robot), authorities).expect("a URL")
    };
    let known = at("localhost", Some(ours.clone()));
    let main = known.refs(&["refs/heads/main"]).await.expect("refs").branch("main").expect("main");
    assert_eq!(main.to_string(), commit);
    let files = known.fetch(&[main].into()).await.expect("fetched").files(main, None).expect("files");
    assert_eq!(files.len(), 1);

    for (remote, cause, retry) in [
        (
            at("localhost", None),
            "TLS failed: its certificate is signed by an authority that is not trusted here: put that authority's certificate \
             into the Secret, under caFile",
            Retry::Later,
        ),
        (at("git.example.com", Some(ours)), "TLS failed: its certificate is for another name", Retry::Later),
        (
            at("localhost", Some(Authorities(Bytes::from("no PEM")))),
            "the authorities hold no certificate",
            Retry::Never,
        ),
    ] {
        let error = remote.refs(&["HEAD"]).await.expect_err(cause);
        assert!(error.cause.starts_with(cause) && error.retry == retry, "{error:?}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_certificate_that_is_its_own_authority_is_believed_unless_it_says_that_it_is_one() {
    for (more, cause) in [
        ("-addext basicConstraints=critical,CA:FALSE", None),
        ("", Some("TLS failed: its certificate is that of an authority (CA:TRUE)")),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        certificates::make_own(directory.path(), more);
        let host = Arc::new(GitHost::new().expect("a git host"));
        host.create("shop/web.git", &[]).expect("a repository");
        host.commit("shop/web.git", "main", &[("a.yaml", b"tag: 1.0\n")]).expect("commit");
        let server = Server::start(host as Arc<dyn StandIn>).await.expect("loopback");
        let port = encrypted(directory.path(), server.address());
        let http: Arc<dyn Http> = Arc::new(to("127.0.0.1", &["localhost"]));
        let own = Authorities(std::fs::read(directory.path().join("server.pem")).expect("its own").into());
        let url = format!("https://localhost:{port}/shop/web.git");
        let refs = Remote::new(http, &url, None, Some(own)).expect("a URL").refs(&["refs/heads/main"]).await;
        match cause {
            None => _ = refs.expect("refs").branch("main").expect("main"),
            Some(cause) => assert!(refs.as_ref().expect_err(more).cause.starts_with(cause), "{:?}", refs.err()),
        }
        server.stop().await;
    }
}

/// The Secret of a Repo: the authority of its git host, or none.
struct Vouched(Option<Vec<u8>>);

#[async_trait::async_trait]
impl Secrets for Vouched {
    async fn read(&self, _: &str, _: &str, _: Purpose) -> Result<BTreeMap<String, Vec<u8>>, PortError> {
        let keys = [("ca.crt", self.0.clone()), ("bearerToken", Some(b"hunter2".to_vec()))];
        Ok(keys.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
    }
}

#[tokio::test]
async fn a_host_that_one_repo_does_not_trust_is_looked_at_by_others() {
    let directory = tempfile::tempdir().expect("a directory");
    certificates::make(directory.path());
    let host = Arc::new(GitHost::new().expect("a git host"));
    host.create("shop/web.git", &[]).expect("a repository");
    host.require_bearer("hunter2");
    let commit = host.commit("shop/web.git", "main", &[("a.yaml", b"tag: 1.0\n")]).expect("commit");
    let server = Server::start(host as Arc<dyn StandIn>).await.expect("loopback");
    let port = encrypted(directory.path(), server.address());
    let ours = std::fs::read(directory.path().join("ca.pem")).expect("the authority");
    let spec = |port: u16| repo_spec(&format!("https://localhost:{port}/shop/web.git"));
    let repo = RepoId::new("platform", "infra");
    let heads_of = |secret: Option<Vec<u8>>| {
        let http = Arc::new(to("127.0.0.1", &["localhost"]));
        heads(http, Arc::new(Vouched(secret)), Keeper::new(Arc::new(SystemClock::default())))
    };

    let trusting = heads_of(Some(ours.clone()));
    let found = trusting.resolve(&repo, &spec(port), &|| ()).await.expect("a commit");
    assert_eq!((found.revision.as_str(), found.name.as_str()), (commit.as_str(), "refs/heads/main"));

    let distrusting = heads_of(None);
    let unresolved = distrusting.resolve(&repo, &spec(port), &|| ()).await.expect_err("no trust");
    assert!(unresolved.why.contains("TLS failed") && unresolved.rest.is_zero(), "{unresolved:?}");
    assert_eq!(distrusting.troubles(), [""; 0]);

    // A port on which nothing listens.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    let unresolved = trusting.resolve(&repo, &spec(closed), &|| ()).await.expect_err("refused");
    assert!(unresolved.why.contains("no connection") && unresolved.rest > Duration::from_secs(25), "{unresolved:?}");
    let [resting]: [String; 1] = trusting.troubles().try_into().expect("one host");
    assert!(resting.starts_with(&format!("git host localhost:{closed} is paused for ")), "{resting}");
    server.stop().await;
}

fn repo_spec(url: &str) -> Spec {
    let minute = Duration::from_secs(60);
    Spec {
        source: Source { url: url.to_owned(), secret: Some("git".to_owned()), ..Source::default() },
        interval: minute,
        approval: Approving::Auto,
        runner: Runner::default(),
        workspace: None,
        retry: objects::repo::spec::Retry { limit: 0, backoff: minute },
        gates: Gates::default(),
        suspended: None,
        keep: Keep { succeeded: 3, failed: 3 },
        stalled_after: minute,
        drift: None,
        report: None,
    }
}

/// Takes TLS off requests for a server, each on a connection of its own; returns its port. Ends with the test's process.
fn encrypted(certificates: &std::path::Path, server: SocketAddr) -> u16 {
    let chain = CertificateDer::pem_file_iter(certificates.join("server.pem")).expect("a file");
    let chain = chain.collect::<Result<_, _>>().expect("certificates");
    let key = PrivateKeyDer::from_pem_file(certificates.join("server.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.expect("versions").with_no_client_auth().with_single_cert(chain, key).expect("a pair");
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).expect("a connection");
            // A client that does not believe us ends the connection.
            let _ = pass_on(&mut rustls::StreamOwned::new(connection, client), server);
        }
    });
    port
}

fn pass_on(client: &mut (impl Read + Write), server: SocketAddr) -> io::Result<()> {
    let request = head_and_body(client)?.replacen("\r\n", "\r\nconnection: close\r\n", 1);
    let mut stream = TcpStream::connect(server)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    client.write_all(&answer)?;
    client.flush()
}

/// One request, which is text.
fn head_and_body(stream: &mut impl Read) -> io::Result<String> {
    let (mut request, mut byte) = (String::new(), [0]);
    while !request.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        request.push(char::from(byte[0]));
    }
    let length =
        request.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    Ok(request + &String::from_utf8(body).map_err(io::Error::other)?)
}
