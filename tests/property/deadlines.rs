//! No machine leaves a deadline in the past: it would be ticked every millisecond. Here those whose histories are walked nowhere
//! else; `delivery`, `tests/model/purge.rs` and `tests/model/world.rs` hold theirs to the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use kernel::id::{Member, Seq, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use kernel::names::distribution::Distribution;
use kernel::names::host::Host;
use kernel::replica::lease::{self, Claim, Election, Replica};
use proof::asked::{Answers, Reply};
use proptest::prelude::*;
use purge::agreement::roster::{Pin, Roster, Stands, Trust, settings};
use purge::bounds::plan::Plan;
use purge::bounds::policy::Policy;
use purge::broker::{self, Broker};
use purge::ports::PortError;
use purge::purges::catalog::{self, Catalog, Freshness};
use purge::purges::purge::CdnErrorClass;
use purge::records::record_codec::decode;

/// What comes next: a call is answered (which, how), something happens by itself, or time passes.
#[derive(Clone, Debug)]
enum Next {
    Answer(usize, u8),
    Happens(u8),
    /// To the next deadline, and so many milliseconds beyond it.
    Passes(u64),
}

fn next() -> impl Strategy<Value = Next> {
    prop_oneof![
        4 => (any::<usize>(), any::<u8>()).prop_map(|(which, how)| Next::Answer(which, how)),
        1 => any::<u8>().prop_map(Next::Happens),
        2 => prop_oneof![Just(0), 0..30_000_u64].prop_map(Next::Passes),
    ]
}

fn walk<M: Machine>(
    mut machine: M,
    history: Vec<Next>,
    answer: impl Fn(M::Effect, u8) -> Option<M::Event>,
    happens: impl Fn(u8) -> M::Event,
) where
    M::Event: Clone + Debug,
{
    let mut now = Timestamp::from_millis(1_000);
    let mut calls = machine.tick(now);
    for next in history {
        let said = format!("{next:?}");
        match next {
            Next::Answer(_, _) if calls.is_empty() => {}
            Next::Answer(which, how) => {
                let call = calls.remove(which % calls.len());
                if let Some(event) = answer(call, how) {
                    calls.extend(machine.step_and_catch_up(now, event));
                }
            }
            Next::Happens(what) => calls.extend(machine.step_and_catch_up(now, happens(what))),
            Next::Passes(beyond) => {
                let Some(deadline) = machine.next_deadline() else { continue };
                now = Timestamp::from_millis(now.max(deadline).as_millis() + beyond);
                calls.extend(machine.tick(now));
            }
        }
        assert!(!machine.is_due(now), "after {said} at {now:?}: {machine:#?}");
    }
}

fn distribution() -> Distribution {
    Distribution {
        id: "E1".parse().expect("an id"),
        domain_name: "e1.cloudfront.net".to_owned(),
        aliases: vec!["www.example.com".to_owned()],
        origins: Vec::new(),
        enabled: true,
        staging: false,
        tenant_only: false,
        rewrites: false,
        cache_tags: false,
    }
}

/// A distribution tenant of another domain.
fn tenant() -> Distribution {
    let (id, aliases) = ("dt_a".parse().expect("an id"), vec!["shop.example.com".to_owned()]);
    Distribution { id, domain_name: String::new(), aliases, ..distribution() }
}

fn web() -> WorkloadId {
    WorkloadId::deployment("shop", "web")
}

fn a_broker(member_count: usize, boards: usize, listen_only: bool) -> Broker {
    let identity = broker::Identity {
        member: "eu-1".into(),
        origin: "o1".into(),
        boot: "b".to_owned(),
        version: "0".to_owned(),
        stands: Stands::default(),
        listen_only,
        trust: Trust::default(),
    };
    let roster = (member_count > 1).then(|| {
        let members: BTreeSet<Member> = (1..=member_count).map(|n| Member::from(format!("eu-{n}").as_str())).collect();
        let pin = Pin { of: member_count, members, ..Pin::default() };
        Roster::new("eu-1".into(), "o1".into(), BTreeSet::new(), settings(&Policy::default(), false), Some(pin))
    });
    Broker::new(identity, roster, (0..boards).map(|board| format!("redis-{board}")).collect())
}

fn of_the_outside(effect: broker::Effect, how: u8) -> Option<broker::Event> {
    use broker::{Effect, Event, NoAnswer};
    let fails = how.is_multiple_of(3);
    let no = || NoAnswer::from(PortError::passing("failed to ask", "no answer"));
    Some(match effect {
        Effect::Identify(board) => {
            Event::Identified(board, if fails { Err(no()) } else { Ok(format!("id-{}", how % 4)) })
        }
        Effect::Read(board, ..) => Event::Read(board, if fails { Err(no()) } else { Ok(Box::default()) }),
        Effect::Post(board, _) => Event::Posted(board, Err(no())),
        Effect::Heartbeat(board, _) => Event::Beaten(board, if fails { Err(no()) } else { Ok(None) }),
        Effect::GatherWords => Event::WordsGathered(BTreeMap::new(), i64::from(how)),
        Effect::ReadLedger => Event::LedgerRead(if fails { Err(no()) } else { Ok(None) }),
        Effect::LoadRecord(id) => Event::RecordLoaded(id, if fails { Err(no()) } else { Ok((None, Seq(0).into())) }),
        Effect::ReadPin => Event::PinRead(if fails { Err(no()) } else { Ok(None) }),
        Effect::StorePin(pin, _) => Event::PinStored(pin, if fails { Err(no()) } else { Ok(how.is_multiple_of(2)) }),
        Effect::Tell(_)
        | Effect::Want(_)
        | Effect::TellHold(_)
        | Effect::TellRelease(_)
        | Effect::TellHeldUp(..)
        | Effect::TellRejected(..)
        | Effect::TellDoubt(_) => return None,
    })
}

fn to_a_broker(what: u8) -> broker::Event {
    use broker::Event;
    let record = decode(br#"{"r":1,"u":"u","s":1,"v":{"web":"shop/web:1.2"}}"#).expect("a record");
    match what % 5 {
        0 => Event::Published(web(), Box::new(record)),
        1 => Event::Absent(web(), Seq(1)),
        2 => Event::Left(web()),
        3 => Event::Forgotten(web(), Seq(1), 1),
        _ => Event::Woken(usize::from(what) % 2),
    }
}

proptest! {
    #[test]
    fn no_broker_leaves_a_deadline_behind(
        history in prop::collection::vec(next(), 1..60),
        members in 1..3_usize,
        boards in 0..3_usize,
        listen_only: bool,
    ) {
        walk(a_broker(members, boards, listen_only), history, of_the_outside, to_a_broker);
    }

    #[test]
    fn no_catalog_leaves_a_deadline_behind(history in prop::collection::vec(next(), 1..60)) {
        let answer = |effect, how: u8| match effect {
            catalog::Effect::List if how.is_multiple_of(8) => {
                let for_distribution_tenants = Distribution { tenant_only: true, aliases: Vec::new(), ..distribution() };
                Some(catalog::Event::Listed(vec![for_distribution_tenants]))
            }
            catalog::Effect::List if how.is_multiple_of(4) => Some(catalog::Event::Listed(vec![distribution()])),
            catalog::Effect::List if how.is_multiple_of(2) => Some(catalog::Event::Listed(Vec::new())),
            catalog::Effect::List => Some(catalog::Event::ListFailed("throttled".to_owned())),
            catalog::Effect::ListDistributionTenants(_) => {
                let classes = [CdnErrorClass::Denied, CdnErrorClass::Throttled];
                let class = classes.get(usize::from(how % 3));
                let answer = class.map_or_else(|| Ok(vec![tenant()]), |class| Err((*class, "no".to_owned())));
                Some(catalog::Event::DistributionTenantsListed(answer))
            }
            catalog::Effect::FindDistributionTenant(host) => {
                let answer = if how.is_multiple_of(3) { Err((CdnErrorClass::Throttled, "no".to_owned())) } else { Ok(None) };
                Some(catalog::Event::DistributionTenantFound(host, answer))
            }
            catalog::Effect::ReadTags(id) => {
                Some(catalog::Event::TagsRead(id, Ok(how.is_multiple_of(2).then(|| "tag".to_owned()))))
            }
            catalog::Effect::Sample(id, question) => {
                let answers = Answers { edge: Reply::default(), pods: Vec::new() };
                Some(catalog::Event::Sampled(id, question, Box::new(answers)))
            }
            catalog::Effect::Answer(..) => None,
        };
        let asks = |what: u8| match what % 8 {
            0 => catalog::Event::Begun,
            1 | 2 => catalog::Event::Refused(distribution().id, CdnErrorClass::Gone),
            _ => {
                let hosts = [Host::parse("www.example.com").expect("a host")].into();
                catalog::Event::Asked(u64::from(what), Plan { hosts, ..Plan::default() })
            }
        };
        walk(Catalog::new(Freshness::default()).sampling_tags(true), history, answer, asks);
    }

    #[test]
    fn no_election_leaves_a_deadline_behind(history in prop::collection::vec(next(), 1..60)) {
        let claim = |how: u8| Claim { holder: format!("{}_1", how % 2), renewed: how.to_string(), ..Claim::default() };
        let fails = |how: u8| lease::Event::Failed { why: "no".to_owned(), lasting: how.is_multiple_of(2) };
        let answer = |effect, how: u8| match effect {
            lease::Effect::Look if how.is_multiple_of(3) => Some(fails(how)),
            lease::Effect::Look => Some(lease::Event::Looked((!how.is_multiple_of(4)).then(|| claim(how)))),
            lease::Effect::Take(_) if how.is_multiple_of(3) => Some(fails(how)),
            lease::Effect::Take(_) => Some(lease::Event::Taken((!how.is_multiple_of(4)).then(|| claim(0)))),
            lease::Effect::Release(_) => None,
        };
        let us = Replica { pod: "0".to_owned(), boot: "1".to_owned() };
        let happens = |what: u8| if what == 0 { lease::Event::Resigned } else { lease::Event::Looked(None) };
        walk(Election::new(us, Timestamp::from_millis(0)), history, answer, happens);
    }
}
