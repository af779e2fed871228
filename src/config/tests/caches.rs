//! `[[cache]]`.

use purge::caches::{Cache, Method, Port};

use super::*;

fn of(entries: &str) -> Result<Loaded, Invalid> {
    load_with(&[("c.toml", entries)], &[], &[])
}

fn read(entries: &str) -> Vec<Arc<Cache>> {
    of(entries).unwrap().config.purge.caches
}

/// What is wrong with an entry.
fn refused(entry: &str) -> Vec<String> {
    of(entry).unwrap_err().problems.into_iter().map(|problem| problem.message).collect()
}

const VARNISH: &str = "[[cache]]\nname = \"varnish\"\nservice = \"shop/varnish:80\"\nmethod = \"BAN\"\n";

#[test]
fn what_is_not_said_is_as_documented() {
    let [cache] = read(VARNISH).try_into().unwrap();
    let is_default = (cache.hosts.is_empty(), cache.headers.is_empty(), cache.wildcard, cache.timeout.as_secs());
    assert_eq!(is_default, (true, true, false, 60));
    assert_eq!(
        (cache.method, cache.is_done(204), cache.is_done(404), cache.is_done(412)),
        (Method::Ban, true, true, true)
    );
    assert!(!cache.is_done(302) && !cache.is_done(403) && !cache.is_done(503));
    assert_eq!(cache.to_string(), "varnish (shop/varnish:80)");
}

#[test]
fn all_of_it_is_read() {
    let all = "path = \"/x{path}\"\nheaders = { X-Ban = \"{regex}\", host = \"{host}\" }\nhosts = [\"WWW.example.com\", \"*.a.io\"]\ngone = []\n\
               wildcard = true\ntimeout = \"5s\"\n";
    let nginx = "[[cache]]\nname = \"nginx\"\nservice = \"web/nginx:http\"\nmethod = \"purge\"\nwildcard = true\n";
    let [varnish, nginx] = read(&format!("{VARNISH}{all}{nginx}")).try_into().unwrap();
    let hosts: Vec<String> = varnish.hosts.iter().map(ToString::to_string).collect();
    let headers: Vec<&str> = varnish.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!((hosts, headers), (vec!["**.a.io".to_owned(), "www.example.com".to_owned()], vec!["host", "x-ban"]));
    assert_eq!((varnish.gone.len(), varnish.wildcard, varnish.timeout.as_secs()), (0, true, 5));
    assert_eq!((&nginx.service.port, nginx.method), (&Port::Name("http".to_owned()), Method::Purge));
}

#[test]
fn what_can_never_work_is_refused_at_once() {
    let purge = VARNISH.replace("BAN", "PURGE");
    let [why] = refused(&purge).try_into().unwrap();
    assert_eq!(why, "entry 1: varnish can never be asked for /*, which purge.paths has: one PURGE names one page");
    assert_eq!(read(&format!("[purge]\npaths = [\"/\"]\n{purge}")).len(), 1);
    assert_eq!(read(&format!("{purge}wildcard = true\n")).len(), 1);
    assert!(refused(&format!("[purge]\npaths = [\"#t\"]\n{purge}"))[0].contains("can never be asked for #t"));
    let get = format!("{}wildcard = true\n", VARNISH.replace("BAN", "GET"));
    assert!(refused(&get)[0].contains("for the page itself by GET"));
    assert_eq!(read(&format!("{get}path = \"/purge{{path}}\"\n")).len(), 1);
    assert!(refused(&format!("{VARNISH}{VARNISH}"))[0].contains("entry 2: varnish is there twice"));
}

#[test]
fn what_is_no_cache_says_why_and_a_header_is_not_quoted() {
    for (line, why) in [
        ("service = \"varnish:80\"", "service is no Service and port"),
        ("service = \"shop/varnish\"", "service is no Service and port"),
        ("service = \"shop/varnish:0\"", "service is no Service and port"),
        ("service = \"shop/varnish:99999\"", "service is no Service and port"),
        ("name = \"My cache\"", "name is not a name"),
        ("method = \"DELETE\"", "method is no method"),
        ("path = \"purge{path}\"", "path is no target"),
        ("path = \"/{regex}\"", "path is no target"),
        ("path = \"/{tag}\"", "path has a brace"),
        ("gone = [200]", "an item of gone is no status"),
        ("gone = [503]", "an item of gone is no status"),
        ("hosts = [\"https://a.io\"]", "an item of hosts is not a host"),
        ("timeout = \"1h\"", "timeout is not in range"),
        ("timeout = 5", "timeout is not a text"),
        ("wildcard = \"yes\"", "wildcard is neither"),
        ("headers = { \"a b\" = \"x\" }", "is no name of a header"),
        ("headers = { connection = \"close\" }", "is the connection's own"),
        ("headers = { x-key = \"s3cr3t\\nx\" }", "has a value that cannot be sent"),
        ("tiemout = \"5s\"", "tiemout is not a key"),
    ] {
        let name = line.split(' ').next().unwrap();
        let rest: Vec<&str> = VARNISH.lines().filter(|given| !given.starts_with(name)).collect();
        let said = refused(&format!("{}\n{line}\n", rest.join("\n")));
        assert!(said.len() == 1 && said[0].contains(why), "{line}: {said:?}");
        assert!(!format!("{:?}", of(&format!("{}\n{line}\n", rest.join("\n")))).contains("s3cr3t"), "{line}");
    }
    assert_eq!(refused("[[cache]]\n").len(), 3, "name, service and method");
}
