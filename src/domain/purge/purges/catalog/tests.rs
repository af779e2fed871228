mod distribution_tenants;

use super::*;
use kernel::names::host::Host;
use proof::asked::{Answer, Body, Headers, Reply};

fn plan(host: &str) -> Plan {
    Plan { hosts: [Host::parse(host).expect("a host")].into(), ..Plan::default() }
}

fn distribution(id: &str, alias: &str) -> Distribution {
    Distribution {
        id: id.parse().expect("an id"),
        domain_name: format!("{}.cloudfront.net", id.to_lowercase()),
        aliases: vec![alias.to_owned()],
        origins: Vec::new(),
        enabled: true,
        staging: false,
        tenant_only: false,
        rewrites: false,
        cache_tags: false,
    }
}

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

#[test]
fn an_unknown_host_is_answered_by_a_newer_listing_and_costs_one_per_miss_interval() {
    let mut catalog = Catalog::new(Freshness::default());
    assert_eq!(catalog.step(at(0), Event::Asked(1, plan("www.example.com"))), vec![Effect::List]);
    let listed = catalog.step(at(1), Event::Listed(vec![distribution("E1", "shop.example.com")]));
    assert_eq!(listed, vec![Effect::Answer(1, Ok(Found::default()))]);
    assert_eq!(catalog.step(at(2), Event::Asked(2, plan("www.example.com"))), vec![]);
    assert_eq!(catalog.step(at(3), Event::Asked(3, plan("www.example.com"))), vec![]);
    assert_eq!(catalog.next_deadline(), Some(at(61)));
    assert_eq!(catalog.tick(at(61)), vec![Effect::List]);
    let listed = catalog.step(at(62), Event::Listed(vec![distribution("E2", "www.example.com")]));
    assert_eq!(listed.len(), 2, "both found the distribution made after the first listing: {listed:?}");
    assert!(
        listed.iter().all(|effect| matches!(effect, Effect::Answer(_, Ok(found)) if found.distributions.len() == 1))
    );
}

#[test]
fn named_distributions_are_answered_beside_what_the_hosts_match() {
    let named = |plan: Plan, id: &str| Plan { distributions: [id.parse().expect("an id")].into(), ..plan };
    let mut catalog = Catalog::new(Freshness::default());
    let only_named = catalog.step(at(0), Event::Asked(1, named(Plan::default(), "E9")));
    assert_eq!(only_named, [answered(1, &["E9"], &[])]);
    assert_eq!(catalog.step(at(0), Event::Asked(2, named(plan("shop.example.com"), "E9"))), vec![Effect::List]);
    let listed = catalog.step(at(1), Event::Listed(vec![distribution("E1", "shop.example.com")]));
    let Some(Effect::Answer(2, Ok(Found { distributions, .. }))) = listed.first() else { panic!("{listed:?}") };
    let reached: Vec<_> = distributions.iter().map(|(id, by)| (id.as_str(), by.hosts.len(), by.otherwise)).collect();
    assert_eq!(reached, [("E1", 1, false), ("E9", 0, true)]);
}

#[test]
fn the_account_is_listed_at_every_interval_and_an_old_listing_answers_nobody() {
    let mut catalog = Catalog::new(Freshness::default());
    assert_eq!(catalog.step(at(0), Event::Begun), vec![Effect::List]);
    catalog.step(at(1), Event::Listed(vec![distribution("E1", "shop.example.com")]));
    assert_eq!(catalog.next_deadline(), Some(at(601)));
    let late = catalog.step(at(700), Event::Asked(1, plan("shop.example.com")));
    assert_eq!(late, vec![Effect::List], "the alias may have moved to another distribution");
    let listed = catalog.step(at(701), Event::Listed(vec![distribution("E2", "shop.example.com")]));
    assert!(
        matches!(listed.as_slice(), [Effect::Answer(1, Ok(found))] if found.distributions.contains_key(&"E2".parse().expect("an id")))
    );
}

#[test]
fn a_distribution_that_is_gone_makes_the_listing_old_for_its_hosts_alone() {
    let [shop, blog] = ["shop.example.com", "blog.example.com"];
    let gone = |id: &str| Event::Refused(id.parse().expect("an id"), CdnErrorClass::Gone);
    let answer = |effects: Vec<Effect>| match &effects[..] {
        [Effect::Answer(token, Ok(found))] => (*token, found.distributions.keys().map(ToString::to_string).collect()),
        other => panic!("{other:?}"),
    };
    let of = |token: Token, id: &str| (token, vec![id.to_owned()]);
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Begun);
    catalog.step(at(1), Event::Listed(vec![distribution("E1", shop), distribution("E2", blog)]));
    assert_eq!(catalog.step(at(5), gone("E9")), [], "it is in no listing");
    assert_eq!(catalog.next_deadline(), Some(at(601)));

    assert_eq!(catalog.step(at(10), gone("E1")), [], "the last listing is not a minute old");
    assert_eq!(catalog.next_deadline(), Some(at(61)));
    assert_eq!(answer(catalog.step(at(11), Event::Asked(1, plan(blog)))), of(1, "E2"));
    assert_eq!(catalog.step(at(12), Event::Asked(2, plan(shop))), [], "what serves it is not known");
    assert_eq!(catalog.tick(at(61)), [Effect::List]);
    let failed = |token| Effect::Answer(token, Err(NotFound("throttled".to_owned())));
    assert_eq!(catalog.step(at(62), Event::ListFailed("throttled".to_owned())), [failed(2)]);
    assert_eq!(catalog.step(at(62), Event::Asked(4, plan(shop))), [failed(4)], "the one that is gone is no answer");
    assert_eq!(answer(catalog.step(at(62), Event::Asked(5, plan(blog)))), of(5, "E2"));
    catalog.tick(at(120));
    catalog.step(at(121), Event::Listed(vec![distribution("E3", shop), distribution("E2", blog)]));
    assert_eq!(answer(catalog.step(at(122), Event::Asked(6, plan(shop)))), of(6, "E3"));
    assert_eq!(catalog.next_deadline(), Some(at(721)));
    let throttled = Event::Refused("E3".parse().expect("an id"), CdnErrorClass::Throttled);
    assert_eq!((catalog.step(at(123), throttled), catalog.next_deadline()), (vec![], Some(at(721))));

    // Where the listing is older, it is replaced at once; and if it says the same again, that is what there is.
    assert_eq!(catalog.step(at(300), gone("E3")), [Effect::List]);
    catalog.step(at(301), Event::Listed(vec![distribution("E3", shop)]));
    assert_eq!(answer(catalog.step(at(302), Event::Asked(3, plan(shop)))), of(3, "E3"));
}

#[test]
fn while_cloudfront_is_down_the_last_listing_holds() {
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Asked(1, plan("shop.example.com")));
    catalog.step(at(1), Event::Listed(vec![distribution("E1", "shop.example.com")]));
    assert_eq!(catalog.step(at(1000), Event::Asked(2, plan("shop.example.com"))), vec![Effect::List]);
    let down = catalog.step(at(1001), Event::ListFailed("down".into()));
    assert!(matches!(down.as_slice(), [Effect::Answer(2, Ok(found))] if found.distributions.len() == 1));
    let resting = catalog.step(at(1001), Event::Asked(3, plan("shop.example.com")));
    assert!(matches!(resting.as_slice(), [Effect::Answer(3, Ok(found))] if found.distributions.len() == 1));
}

#[test]
fn a_failed_listing_is_answered_with_its_reason_and_not_repeated_at_once() {
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Asked(1, plan("www.example.com")));
    let failed = catalog.step(at(0), Event::ListFailed("AccessDenied".into()));
    assert_eq!(failed, vec![Effect::Answer(1, Err(NotFound("AccessDenied".into())))]);
    let again = catalog.step(at(0), Event::Asked(2, plan("www.example.com")));
    assert_eq!(again, vec![Effect::Answer(2, Err(NotFound("AccessDenied".into())))]);
}

fn tagged(token: Token, distributions: &[&str]) -> Event {
    let distributions = distributions.iter().map(|id| id.parse().expect("an id")).collect();
    let paths = ["#shop".parse().expect("a tag")].into_iter().collect();
    Event::Asked(token, Plan { distributions, paths, ..Plan::default() })
}

fn read(id: &str, read: Result<bool, (CdnErrorClass, String)>) -> Event {
    let header = read.map(|on| on.then(|| "Cache-Tag".to_owned()));
    Event::TagsRead(id.parse().expect("an id"), header)
}

fn answered(token: Token, distributions: &[&str], tagged: &[&str]) -> Effect {
    let ids = |ids: &[&str]| ids.iter().map(|id| id.parse().expect("an id")).collect();
    Effect::Answer(token, Ok(Found { tagged: ids(tagged), ..Found::from(ids(distributions)) }))
}

#[test]
fn a_plan_with_tags_is_answered_when_it_is_known_which_distributions_have_them() {
    let mut catalog = Catalog::new(Freshness::default());
    let reads = catalog.step(at(0), tagged(1, &["E1", "E2"]));
    assert_eq!(reads, ["E1", "E2"].map(|id| Effect::ReadTags(id.parse().expect("an id"))));
    assert_eq!(catalog.step(at(0), tagged(2, &["E2"])), [], "it is being read already");
    assert_eq!(catalog.step(at(1), read("E2", Ok(true))), [answered(2, &["E2"], &["E2"])]);
    assert_eq!(catalog.step(at(2), read("E1", Ok(false))), [answered(1, &["E1", "E2"], &["E2"])]);
    assert_eq!(catalog.step(at(599), tagged(3, &["E1"])), [answered(3, &["E1"], &[])], "known for a while");
    assert_eq!(catalog.step(at(700), tagged(4, &["E1"])).len(), 1, "and then read again");
}

#[test]
fn where_it_may_not_be_read_tags_count_as_off_and_that_can_be_seen() {
    let mut catalog = Catalog::new(Freshness::default());
    drop(catalog.step(at(0), tagged(1, &["E1", "E2"])));
    let denied = || Err((CdnErrorClass::Denied, "AccessDenied".to_owned()));
    assert_eq!(catalog.step(at(0), read("E1", denied())), []);
    assert_eq!(catalog.step(at(0), read("E2", denied())), [answered(1, &["E1", "E2"], &[])]);
    assert_eq!(catalog.tags_denied(), Some("AccessDenied"));
    drop(catalog.step(at(700), tagged(2, &["E1"])));
    assert_eq!(catalog.step(at(700), read("E1", Ok(true))), [answered(2, &["E1"], &["E1"])]);
    assert_eq!(catalog.tags_denied(), None);
}

/// The answer of the edge to a sample: a status, and these headers.
fn answer(status: u16, lines: &[(&str, &str)], question: &EdgeQuestion) -> Box<Answers> {
    let headers = Headers::of(lines.iter().copied(), question.marker_header.as_deref());
    let (path, now) = (question.page.path().as_str().to_owned(), at(0));
    let hops = vec![Answer { path, started: now, ended: now, status, headers, body: Body::Unread }];
    Box::new(Answers { edge: Reply { hops, failure: None }, pods: Vec::new() })
}

#[test]
fn answers_without_the_header_make_paths_of_tags_and_what_cannot_be_looked_at_does_not() {
    let cdn = ("x-amz-cf-id", "id");
    let table = [
        (200, &[cdn, ("cache-tag", "shop, blog")][..], true),
        (200, &[cdn][..], false),
        (200, &[("cache-tag", "")][..], true),
        (200, &[][..], true),
        (301, &[cdn][..], true),
        (503, &[cdn][..], true),
    ];
    for (status, lines, is_tagged) in table {
        let mut catalog = Catalog::new(Freshness::default()).sampling_tags(true);
        let hosts = ["*.example.com", "www.example.com", "other.example.net"].map(|host| Host::parse(host).unwrap());
        let paths = ["#shop", "/a*", "/b"].map(|item| item.parse().unwrap()).into_iter().collect();
        let plan =
            Plan { hosts: hosts.into(), distributions: ["E1".parse().unwrap()].into(), paths, ..Plan::default() };
        drop(catalog.step(at(0), Event::Begun));
        drop(catalog.step(at(0), Event::Listed(vec![distribution("E1", "www.example.com")])));
        drop(catalog.step(at(0), Event::Asked(1, plan)));
        drop(catalog.step(at(61), Event::Listed(vec![distribution("E1", "www.example.com")])));
        let sampled = catalog.step(at(61), read("E1", Ok(true)));
        let [Effect::Sample(id, question)] = &sampled[..] else { panic!("{sampled:?}") };
        assert_eq!((question.page.to_string().as_str(), question.asks_pods), ("www.example.com/b", false));
        let answers = answer(status, lines, question);
        let found = catalog.step(at(62), Event::Sampled(id.clone(), question.clone(), answers));
        let [Effect::Answer(1, Ok(found))] = &found[..] else { panic!("{found:?}") };
        assert_eq!((!found.tagged.is_empty(), found.untagged.is_empty()), (is_tagged, is_tagged), "{status} {lines:?}");
        let words: Vec<String> = catalog.tags_missing(at(62)).collect();
        let said = "all of E1 is purged, and not by cache tags: www.example.com/b comes without the header cache-tag that is to carry them";
        assert_eq!(words, if is_tagged { vec![] } else { vec![said.to_owned()] });
        assert_eq!(catalog.tags_missing(at(662)).count(), 0, "not for longer than it is believed");
        let again = catalog.step(at(100), tagged(2, &["E1"]));
        let [Effect::Answer(2, Ok(found))] = &again[..] else { panic!("{again:?}") };
        assert_eq!((!found.tagged.is_empty(), found.untagged.is_empty()), (is_tagged, is_tagged), "known for a while");
    }
}

#[test]
fn where_no_page_is_known_or_a_sample_is_not_wanted_the_configuration_is_believed() {
    for samples in [true, false] {
        let mut catalog = Catalog::new(Freshness::default()).sampling_tags(samples);
        drop(catalog.step(at(0), tagged(1, &["E1"])));
        assert_eq!(catalog.step(at(0), read("E1", Ok(true))), [answered(1, &["E1"], &["E1"])]);
    }
}

#[test]
fn what_may_pass_is_answered_with_its_reason_and_asked_again() {
    let mut catalog = Catalog::new(Freshness::default());
    drop(catalog.step(at(0), tagged(1, &["E1"])));
    let throttled = Err((CdnErrorClass::Throttled, "Throttling".to_owned()));
    assert_eq!(catalog.step(at(0), read("E1", throttled)), [Effect::Answer(1, Err(NotFound("Throttling".into())))]);
    assert_eq!(catalog.step(at(1), tagged(2, &["E1"])).len(), 1);
}

#[test]
fn of_very_many_distributions_only_the_first_are_read() {
    let mut catalog = Catalog::new(Freshness::default());
    let ids: Vec<String> = (0..100).map(|number| format!("E{number:03}")).collect();
    let names: Vec<&str> = ids.iter().map(String::as_str).collect();
    assert_eq!(catalog.step(at(0), tagged(1, &names)).len(), TAGS_READ_MAX);
}

fn found(effects: &[Effect]) -> Vec<(Token, Vec<String>, Listing)> {
    let found = effects.iter().filter_map(|effect| match effect {
        Effect::Answer(token, Ok(found)) => {
            let ids = found.distributions.keys().map(ToString::to_string).collect();
            Some((*token, ids, found.listing))
        }
        Effect::Answer(_, Err(_))
        | Effect::List
        | Effect::ListDistributionTenants(_)
        | Effect::FindDistributionTenant(_)
        | Effect::ReadTags(_)
        | Effect::Sample(..) => None,
    });
    found.collect()
}

fn of(token: Token, ids: &[&str], listing: Listing) -> (Token, Vec<String>, Listing) {
    (token, ids.iter().map(|id| (*id).to_owned()).collect(), listing)
}

/// A catalog that was listed from second 0 to second 1: `shop` is served by E1.
fn listed() -> Catalog {
    let mut catalog = Catalog::new(Freshness::default());
    catalog.step(at(0), Event::Begun);
    catalog.step(at(1), Event::Listed(vec![distribution("E1", "shop.example.com")]));
    catalog
}

#[test]
fn an_alias_that_moved_twenty_seconds_ago_is_answered_at_once_and_found_by_the_comparison() {
    let mut catalog = listed();
    let shop = || plan("shop.example.com");
    let at_once = catalog.step(at(100), Event::Asked(1, shop()));
    assert_eq!(found(&at_once), [of(1, &["E1"], Listing::Before(Duration::from_secs(100)))]);
    assert_eq!(catalog.step(at(100), Event::Compared(2, shop())), [Effect::List]);
    // A question while that listing is under way is older than what it says; a comparison needs the next one.
    assert_eq!(catalog.step(at(101), Event::Compared(3, shop())), []);
    let moved = || Event::Listed(vec![distribution("E2", "shop.example.com")]);
    assert_eq!(found(&catalog.step(at(102), moved())), [of(2, &["E2"], Listing::After)]);
    assert_eq!(catalog.next_deadline(), Some(at(105)), "five seconds after the one before it began");
    assert_eq!(catalog.tick(at(105)), [Effect::List]);
    assert_eq!(found(&catalog.step(at(106), moved())), [of(3, &["E2"], Listing::After)]);
    assert_eq!(catalog.next_deadline(), Some(at(706)), "and no more than the interval wants");
}

#[test]
fn a_listing_that_was_waited_for_began_after_the_question_and_needs_no_comparison() {
    let mut catalog = listed();
    assert_eq!(catalog.step(at(100), Event::Asked(1, plan("new.example.com"))), [Effect::List]);
    let listed = catalog.step(at(101), Event::Listed(vec![distribution("E2", "new.example.com")]));
    assert_eq!(found(&listed), [of(1, &["E2"], Listing::After)]);
}

#[test]
fn a_plan_of_ids_only_is_compared_with_nothing() {
    let mut catalog = listed();
    let named = Plan { distributions: ["E9".parse().expect("an id")].into(), ..Plan::default() };
    assert_eq!(found(&catalog.step(at(100), Event::Compared(1, named))), [of(1, &["E9"], Listing::After)]);
    assert_eq!(catalog.next_deadline(), Some(at(601)));
}

#[test]
fn a_hundred_comparisons_share_a_listing_each_five_seconds() {
    let mut catalog = listed();
    let (mut lists, mut answers, mut under_way) = (0, 0, false);
    for second in 100..120 {
        let mut effects = if under_way {
            catalog.step(at(second), Event::Listed(vec![distribution("E1", "shop.example.com")]))
        } else {
            catalog.tick(at(second))
        };
        for number in 0..5 {
            effects.extend(catalog.step(at(second), Event::Compared(second * 10 + number, plan("shop.example.com"))));
        }
        under_way = effects.contains(&Effect::List);
        lists += usize::from(under_way);
        answers += found(&effects).len();
    }
    assert_eq!(lists, 4, "at 100, 105, 110 and 115 s");
    assert!(answers >= 70, "{answers}");
}

#[test]
fn a_comparison_that_gets_no_listing_for_a_minute_is_answered_by_what_is_known() {
    let down = || Event::ListFailed("AccessDenied".into());
    let mut catalog = listed();
    assert_eq!(catalog.step(at(100), Event::Compared(1, plan("shop.example.com"))), [Effect::List]);
    assert_eq!(catalog.step(at(101), down()), [], "it is tried again first");
    let mut now = at(101);
    let mut answers = Vec::new();
    while now < at(165) {
        now = catalog.next_deadline().expect("it is tried again").max(now);
        for effect in catalog.tick(now) {
            match effect {
                Effect::List => answers.extend(catalog.step(now, down())),
                answer => answers.push(answer),
            }
        }
    }
    assert_eq!(now, at(165));
    assert_eq!(found(&answers), [of(1, &["E1"], Listing::Before(Duration::from_secs(165)))]);
    // One whose call never ends is given up as well.
    let mut hung = listed();
    assert_eq!(hung.step(at(100), Event::Compared(1, plan("shop.example.com"))), [Effect::List]);
    assert_eq!(hung.next_deadline(), Some(at(165)));
    assert_eq!(found(&hung.tick(at(165))), [of(1, &["E1"], Listing::Before(Duration::from_secs(165)))]);
    // And a process that has had none says so.
    let mut new = Catalog::new(Freshness::default());
    assert_eq!(new.step(at(100), Event::Compared(1, plan("shop.example.com"))), [Effect::List]);
    assert_eq!(found(&new.tick(at(165))), [of(1, &[], Listing::Missing)]);
}
