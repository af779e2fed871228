//! `--cacheability`: a site that is asked for a few pages, and what is said of them.

use std::net::SocketAddr;

use allclear::adapters::edge_look::EdgeLook;
use allclear::adapters::http::{Egress, Settings};

use super::*;
use crate::edge_look::{Peer, ok, redirect};

const CACHED: &str = "X-Amz-Cf-Id: an-id\r\nX-Cache: Hit from cloudfront\r\nAge: 3\r\n";

/// The report of an installation whose host is this site.
async fn report_of(site: SocketAddr) -> Report {
    let mut world = World::start().await;
    world.options.cacheability = Some(std::time::Duration::ZERO);
    let loaded = world.loaded();
    let mut outside = world.outside(&loaded).await;
    let settings = Settings::new(Egress { allow_private: false });
    let look = EdgeLook::new(&settings, [], Arc::new(SystemClock::default())).unwrap();
    outside.edge = Ok(look.with_stand_ins(BTreeMap::from([("shop.example.com".to_owned(), site)])));
    once(&loaded, &Whose::Itself, outside, &world.options).await
}

fn lines(report: &Report) -> Vec<String> {
    let ours = report.findings.iter().filter(|found| found.check.id == "cacheability");
    ours.map(|found| format!("{} {}", found.about.as_deref().unwrap_or("-"), found.reason)).collect()
}

#[tokio::test]
async fn a_page_and_what_it_loads_say_what_a_purge_does_not_reach_and_what_it_throws_away() {
    let site = Peer::start(|path| match path {
        "/" => {
            let headers = format!(
                "{CACHED}Content-Type: text/html\r\nCache-Control: max-age=600\r\nSet-Cookie: session=hunter2\r\n"
            );
            ok(&headers, "<script src=\"/app.1f2e.js\"></script><img src=\"/logo.png\">")
        }
        "/app.1f2e.js" => ok(
            &format!("{CACHED}Content-Type: application/javascript\r\nCache-Control: max-age=31536000, immutable\r\n"),
            "x",
        ),
        _ => ok(&format!("{CACHED}Content-Type: image/png\r\nCache-Control: max-age=60\r\n"), "x"),
    });
    let site = site.await;
    let report = report_of(site.address).await;
    assert_eq!(marked(&report, Mark::Failed), [""; 0], "{report}");
    assert_eq!(
        lines(&report),
        [
            "shop.example.com/ browsers keep the page for 10m: no purge reaches a browser: visitors see the old page until then",
            "shop.example.com/ the edge keeps an answer that sets a cookie: what one visitor's answer sets, all others get until the next purge",
            "shop.example.com/app.1f2e.js the answer is one that never changes: a purge of /* throws it away, and all visitors load the same again",
        ]
    );
    assert!(!report.to_string().contains("hunter2"), "{report}");
    let asked: Vec<String> = site.heads().iter().map(|head| head.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(asked, ["/", "/", "/app.1f2e.js", "/logo.png"], "a page twice, and what it loads once");
    assert!(site.heads().iter().all(|head| !head.to_lowercase().contains("cookie:")));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    for to in ["/en/", "https://other.example/"] {
        let site = Peer::start(move |_| redirect(&format!("{to}\r\n{CACHED}Set-Cookie: a=1")));
        let site = site.await;
        let report = report_of(site.address).await;
        let found = lines(&report);
        assert_eq!(found.len(), 1, "{to}: {found:?}");
        assert!(
            found[0].starts_with("shop.example.com/ the edge keeps an answer that sets a cookie"),
            "{to}: {found:?}"
        );
        assert_eq!(site.heads().len(), 2, "{to}: one request for each question");
    }
}

#[tokio::test]
async fn a_site_with_nothing_to_say_is_good_one_that_is_away_is_named_and_nobody_is_asked_without_the_flag() {
    let site =
        Peer::start(|_| ok(&format!("{CACHED}Content-Type: text/html\r\nCache-Control: s-maxage=60\r\n"), "hello"))
            .await;
    let report = report_of(site.address).await;
    said(&report, "cacheability", "looked at: 1 page of 1 host");
    assert_eq!(marked(&report, Mark::Warning), [""; 0], "{report}");
    // Nobody listens there.
    let report = report_of(SocketAddr::from(([127, 0, 0, 1], 9))).await;
    assert!(lines(&report)[0].starts_with("shop.example.com/ no answer to judge: "), "{report}");
    let report = World::start().await.report().await;
    assert_eq!(lines(&report), [""; 0]);
}
