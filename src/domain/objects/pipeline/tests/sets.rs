//! Stories of several apps that move as one.

use super::*;
use crate::pipeline::judge::What;
use crate::pipeline::set::{parts, place};
use crate::pipeline::spec::Rollback;
use crate::pipeline::status::Cause;

fn apps() -> Vec<String> {
    ["api", "web"].map(str::to_owned).into()
}

fn app(namespace: &str, name: &str) -> TargetKey {
    TargetKey::new(ClusterKey::Here, AppKind::new("apps/v1", "Deployment"), namespace, name)
}

fn revision(text: &str) -> Revision {
    Revision(text.to_owned())
}

/// Staging and prod, each with both apps.
fn set() -> Spec {
    let environment = |name: &str| EnvironmentSpec {
        targets: vec![place(ClusterKey::Here, name, &apps())],
        parts: vec![vec![app(name, "api"), app(name, "web")]],
        ..environment(name, &[], false)
    };
    Spec { environments: in_line(vec![environment("staging"), environment("prod")]), apps: apps(), ..spec(false) }
}

/// Both apps are at 1 in both.
fn story(spec: Spec) -> Story {
    let mut story = Story::new(spec);
    let all = ["staging", "prod"].into_iter().flat_map(|of| ["api", "web"].map(|name| (of, name)));
    all.for_each(|(of, name)| see(&mut story, of, name, at("1")));
    story.pass(MINUTE);
    story.asked.clear();
    story
}

fn see(story: &mut Story, namespace: &str, name: &str, sight: Sight) {
    if !matches!(sight, Sight::Unknown(_)) {
        story.truth.insert(app(namespace, name), sight.clone());
    }
    story.feed(Event::Reported(vec![(app(namespace, name), sight)]));
}

fn promoted(story: &Story) -> Option<(&str, Phase)> {
    let known = story.object.status.environment(&prod())?.promotion.as_ref()?;
    Some((known.revision.0.as_str(), known.phase))
}

fn settled(story: &Story, name: &str) -> Result<String, What> {
    let spec = story.object.spec.as_ref().unwrap();
    let own = spec.environments.iter().find(|one| one.name.0 == name).unwrap();
    judge::settled(own, story.machine.sights()).map(|at| at.0.clone()).map_err(|obstacle| obstacle.what)
}

#[test]
fn a_set_moves_as_it_was_ready_together_and_in_no_other_way() {
    let mut story = story(set());
    assert_eq!(settled(&story, "prod"), Ok("api=1,web=1".to_owned()));
    see(&mut story, "staging", "api", unready("2"));
    see(&mut story, "staging", "web", at("2"));
    assert_eq!(promoted(&story), None, "api is not ready: nothing is a set yet");
    see(&mut story, "staging", "api", at("2"));
    assert_eq!(promoted(&story), Some(("api=2,web=2", Phase::Landed)));
    let told: Vec<_> = story.told.iter().filter(|(kind, _)| *kind == Kind::PromotionStarted).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn what_is_between_two_sets_is_neither_and_says_what_is_missing() {
    let mut spec = set();
    spec.advance = Advance::Stepwise;
    let last = EnvironmentSpec {
        name: Environment("last".to_owned()),
        after: vec![prod()],
        targets: vec![place(ClusterKey::Here, "last", &apps())],
        parts: vec![vec![app("last", "api"), app("last", "web")]],
        ..spec.environments[1].clone()
    };
    spec.environments.push(last);
    let mut story = story(spec);
    ["api", "web"].into_iter().for_each(|name| see(&mut story, "last", name, at("1")));
    // Each alone would be a set as well: staging is ready with it.
    let both = ["api", "web"].map(|name| (app("staging", name), at("2")));
    story.truth.extend(both.clone());
    story.feed(Event::Reported(both.into()));
    assert_eq!(promoted(&story), Some(("api=2,web=2", Phase::Landed)));
    see(&mut story, "prod", "api", at("2"));
    story.pass(MINUTE);
    let Err(What::Unready(of, why)) = settled(&story, "prod") else { panic!("{:?}", settled(&story, "prod")) };
    assert_eq!((of.as_str(), why.as_str()), ("prod/api+web", "web is at 1, and 2 is on its way"));
    let last = |story: &Story| {
        let known = story.object.status.environment(&Environment("last".to_owned()));
        known.and_then(|known| known.promotion.as_ref()).map(|promotion| promotion.revision.0.clone())
    };
    assert_eq!(last(&story), None, "it was never wanted");
    see(&mut story, "prod", "web", at("2"));
    story.pass(MINUTE);
    assert_eq!(promoted(&story), Some(("api=2,web=2", Phase::Completed)));
    assert_eq!(last(&story), Some("api=2,web=2".to_owned()));
}

#[test]
fn step_by_step_what_two_watches_showed_together_is_no_set_unless_it_was_one() {
    let mut story = story(Spec { advance: Advance::Stepwise, ..set() });
    let [api, web] = ["api", "web"].map(|name| (app("staging", name), at("2")));
    story.truth.extend([api.clone(), web.clone()]);
    // The watch of the other one lags.
    story.feed(Event::Reported(vec![web]));
    assert_eq!(promoted(&story), Some(("api=1,web=2", Phase::Waiting)), "nothing has started");
    story.feed(Event::Reported(vec![api]));
    story.pass(MINUTE);
    assert_eq!(promoted(&story), Some(("api=2,web=2", Phase::Landed)));
}

#[test]
fn an_app_that_is_missing_or_unseen_holds_the_set_up_by_its_name() {
    let mut story = story(set());
    see(&mut story, "staging", "web", at("2"));
    for (sight, words) in [
        (Sight::Absent, "staging: an app of staging/api+web does not exist"),
        (Sight::Unknown("no answer".to_owned()), "staging: staging/api+web cannot be read: api: no answer"),
        (unready("2"), "staging: staging/api+web is not ready: api: 1 of 2 pods available"),
        (at("2,3"), "staging: staging/api+web is ready and says no revision: api: a revision with a comma"),
    ] {
        see(&mut story, "staging", "api", sight);
        let spec = story.object.spec.as_ref().unwrap();
        let said = judge::settled(&spec.environments[0], story.machine.sights()).expect_err(words).to_string();
        assert!(said.starts_with(words), "{said}");
    }
    assert_eq!(
        story.object.status.environments[&Environment("staging".to_owned())].targets.len(),
        2,
        "a row for each app"
    );
}

#[test]
fn a_fresh_look_reads_each_app_and_one_that_differs_starts_nothing() {
    let mut story = story(set());
    story.holds_rechecks = true;
    see(&mut story, "staging", "api", at("2"));
    let looked = story.asked.iter().find_map(|asked| match asked {
        Effect::Recheck(name, seq, targets) => Some((name.clone(), *seq, targets.clone())),
        _ => None,
    });
    let (name, seq, targets) = looked.expect("a look");
    assert_eq!(targets.len(), 4, "{targets:?}");
    let mut fresh: Vec<_> = targets.into_iter().map(|one| (one.clone(), story.truth[&one].clone())).collect();
    fresh.iter_mut().filter(|(one, _)| *one == app("staging", "web")).for_each(|(_, sight)| *sight = at("3"));
    story.feed(Event::Rechecked(name, seq, fresh));
    assert_eq!(promoted(&story), Some(("api=2,web=1", Phase::Waiting)));
    let what = What::Moved(revision("api=2,web=3"), revision("api=2,web=1"));
    let obstacle = Obstacle { environment: Environment("staging".to_owned()), what };
    assert_eq!(obstacle.to_string(), "staging: a fresh look found api=2,web=3 where api=2,web=1 was");
}

#[test]
fn a_request_sets_each_app_and_a_choice_names_all() {
    let mut spec = set();
    spec.environments[1].promotion = by_request().environments[1].promotion.clone();
    let mut story = story(spec);
    see(&mut story, "staging", "web", at("2"));
    let order = story.asked.iter().find_map(|asked| match asked {
        Effect::Propose(order) => Some(order.clone()),
        _ => None,
    });
    let marked = order.expect("an order").marked();
    let names: Vec<String> = marked.iter().map(|(of, at)| format!("{}/{} {at}", of.namespace, of.name)).collect();
    assert_eq!(names, ["shop/web/api 1", "shop/web/web 2"]);
    let spec = story.object.spec.as_ref().unwrap();
    let own = &spec.environments[1];
    assert_eq!(spec.may_have(own, &revision("api=7,web=8")), Ok(()));
    for text in ["7", "api=7", "web=8,api=7", "api=7,web=8,db=1", "api=,web=8", "api=7,web=a b", "api=7,web=é"] {
        assert!(spec.may_have(own, &revision(text)).is_err(), "{text}");
    }
    let long = format!("api={},web=1", "x".repeat(600));
    assert!(spec.may_have(own, &revision(&long)).is_err());
}

#[test]
fn a_set_is_read_as_it_is_written() {
    let apps = apps();
    let of = |text: &str| parts(&apps, &revision(text)).map(|all| all.into_iter().map(|(_, part)| part.0).collect());
    assert_eq!(of("api=1=2,web=3"), Some(vec!["1=2".to_owned(), "3".to_owned()]));
    assert_eq!((of("api=1,web=2,"), of("api=1"), of("")), (None, None, None));
}

/// Of two apps that are on their way one comes first and breaks; the deployer waits for it and never takes the other.
#[test]
fn a_set_that_got_there_in_part_and_stalls_goes_back() {
    let mut spec = set();
    spec.environments[1].rollback = Some(Rollback { on: vec![Cause::Stalled], within: Duration::from_hours(3) });
    let mut story = story(spec);
    let both = ["api", "web"].map(|name| (app("staging", name), at("2")));
    story.truth.extend(both.clone());
    story.feed(Event::Reported(both.into()));
    assert_eq!(promoted(&story), Some(("api=2,web=2", Phase::Landed)));
    see(&mut story, "prod", "api", unready("2"));
    story.pass(Duration::from_mins(70));
    assert_eq!(promoted(&story), Some(("api=1,web=1", Phase::Landed)), "{:?}", story.told.last());
    see(&mut story, "prod", "api", at("1"));
    story.pass(MINUTE);
    assert_eq!(promoted(&story), Some(("api=1,web=1", Phase::Completed)));
}

#[test]
fn an_app_that_is_gone_breaks_the_soak_of_its_set() {
    let mut spec = set();
    spec.environments[1].gates.soak = Duration::from_mins(30);
    let mut story = story(spec);
    see(&mut story, "staging", "api", at("2"));
    story.pass(Duration::from_mins(10));
    see(&mut story, "staging", "api", Sight::Absent);
    story.pass(Duration::from_mins(25));
    see(&mut story, "staging", "api", at("2"));
    story.pass(Duration::from_mins(20));
    assert_eq!(promoted(&story), Some(("api=2,web=1", Phase::Waiting)));
    story.pass(Duration::from_mins(11));
    assert_eq!(promoted(&story), Some(("api=2,web=1", Phase::Landed)));
}

#[test]
fn a_set_of_other_apps_ends_what_was_on_its_way_and_another_object_soaks_anew() {
    let mut spec = set();
    spec.environments[1].gates.soak = Duration::from_mins(30);
    let mut story = story(spec);
    see(&mut story, "staging", "api", at("2"));
    story.pass(Duration::from_mins(29));
    story.change(|object| {
        let spec = object.spec.as_mut().unwrap();
        for own in &mut spec.environments {
            own.parts = vec![vec![app(&own.name.0, "api-v2"), app(&own.name.0, "web")]];
        }
    });
    ["staging", "prod"].into_iter().zip(["2", "1"]).for_each(|(of, is)| see(&mut story, of, "api-v2", at(is)));
    story.pass(Duration::from_mins(29));
    assert_eq!(promoted(&story), Some(("api=2,web=1", Phase::Waiting)), "what api soaked is not what api-v2 did");
    story.pass(MINUTE * 2);
    assert_eq!(promoted(&story), Some(("api=2,web=1", Phase::Landed)));
    story.change(|object| {
        let spec = object.spec.as_mut().unwrap();
        spec.apps = ["api", "db"].map(str::to_owned).into();
        for own in &mut spec.environments {
            own.targets = vec![place(ClusterKey::Here, own.name.0.as_str(), &spec.apps)];
            own.parts = vec![vec![app(&own.name.0, "api-v2"), app(&own.name.0, "db")]];
        }
    });
    story.pass(MINUTE);
    assert_eq!(promoted(&story), Some(("api=2,web=1", Phase::Withdrawn)));
    assert_eq!(story.count(Kind::PromotionWithdrawn), 1);
}

/// Numbers that look random and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What both apps of a namespace are ready at, by the truth.
fn ready_together(story: &Story, namespace: &str) -> Option<String> {
    let part = |name: &str| story.truth[&app(namespace, name)].settled().map(|at| format!("{name}={at}"));
    Some(format!("{},{}", part("api")?, part("web")?))
}

/// A deployer that takes the apps of a set one after the other, while somebody releases either app whenever they like.
#[test]
fn whoever_releases_and_deploys_an_app_at_a_time_only_sets_that_were_ready_together_are_promoted_and_the_last_one_arrives()
 {
    for (seed, advance) in (0..120).flat_map(|seed| [Advance::Latest, Advance::Stepwise].map(|how| (seed, how))) {
        let mut dice = Dice(seed);
        let mut story = story(Spec { advance, ..set() });
        let mut seen_together = BTreeSet::from([ready_together(&story, "staging").unwrap()]);
        let mut wanted: Option<Revision> = None;
        let mut newest = 1;
        let mut told = 0;
        for step in 0..90 {
            let is_over = step >= 50;
            let name = ["api", "web"][usize::try_from(dice.roll(2)).unwrap()];
            match if is_over { 6 + dice.roll(2) } else { dice.roll(8) } {
                0 => {
                    newest += 1;
                    see(&mut story, "staging", name, unready(&newest.to_string()));
                }
                1 | 2 => {
                    let at_now = story.truth[&app("staging", name)].revision().cloned().unwrap_or(revision("1"));
                    see(&mut story, "staging", name, at(&at_now.0));
                }
                3 => see(&mut story, "staging", name, Sight::Unknown("no answer".to_owned())),
                4 => story.show_all(),
                5 => story.pass(MINUTE),
                _ => {
                    let apps = apps();
                    let parts = wanted.as_ref().and_then(|wanted| parts(&apps, wanted));
                    let part = parts.and_then(|parts| Some(parts.iter().find(|(of, _)| *of == name)?.1.0.clone()));
                    part.into_iter().for_each(|part| see(&mut story, "prod", name, at(&part)));
                }
            }
            if step == 50 {
                // Everybody rests, and everything is seen again.
                for name in ["api", "web"] {
                    let at_now = story.truth[&app("staging", name)].revision().cloned().unwrap_or(revision("1"));
                    see(&mut story, "staging", name, at(&at_now.0));
                }
                story.show_all();
            }
            if is_over {
                story.pass(MINUTE);
            }
            seen_together.extend(ready_together(&story, "staging"));
            for (kind, message) in &story.told[told..] {
                if *kind == Kind::PromotionStarted {
                    let set = seen_together.iter().find(|set| message.starts_with(&format!("{set} ")));
                    let set = set.unwrap_or_else(|| panic!("seed {seed} {advance:?}: {message}, of {seen_together:?}"));
                    wanted = Some(revision(set));
                }
            }
            told = story.told.len();
        }
        let (staging, prod) = (ready_together(&story, "staging"), ready_together(&story, "prod"));
        assert_eq!(prod, staging, "seed {seed} {advance:?}: {:?}", story.told.last());
    }
}
