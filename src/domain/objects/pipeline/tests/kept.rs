//! A status that the object does not keep, or that cannot be written, and what ends that.

use super::*;

/// Staging is at 2, and the CRD has room for nothing of ours.
fn pruned_story(manual: bool) -> Story {
    let mut story = Story::new(spec(manual));
    story.whole = false;
    story.show("staging", unready("2"));
    story.pass(MINUTE);
    story.show("staging", at("2"));
    story.pass(MINUTE);
    story.see();
    story
}

// Faults: PF12
#[test]
fn what_cannot_be_kept_is_not_acted_on() {
    let mut story = pruned_story(false);
    story.pass(Duration::from_hours(3));
    assert_eq!(story.count(Kind::PromotionStarted), 0);
    assert!(story.condition("StatusPruned").is_some_and(|words| words.contains("allclear crds --weave")));
}

// Faults: PF12
/// Nothing changes in a Pipeline because its CRD does, but that the API server ends the watch, and it is listed again.
#[test]
fn a_crd_that_was_mended_is_noticed_when_it_is_listed_again_or_somebody_asks() {
    for by_hand in [false, true] {
        for is_seen_first in [false, true] {
            let mut story = pruned_story(false);
            (story.whole, story.is_seen_first) = (true, is_seen_first);
            if by_hand {
                story.change(|object| object.answers.poked = Some("now".to_owned()));
            } else {
                story.see();
            }
            story.pass(MINUTE);
            assert_eq!(story.condition("StatusPruned"), None, "{by_hand} {is_seen_first}");
            assert_eq!(story.count(Kind::PromotionStarted), 1, "{by_hand} {is_seen_first}");
        }
    }
}

#[test]
fn while_the_crd_stays_as_it_is_a_listing_costs_one_write_and_no_more() {
    let mut story = pruned_story(false);
    let writes = story.writes;
    // The API server finds nothing to store: the version stays.
    let version = story.object.version.clone();
    story.see();
    assert_eq!(story.writes, writes + 1);
    story.object.version = version;
    story.see();
    story.pass(Duration::from_hours(3));
    assert!(story.writes <= writes + 5, "{} writes", story.writes - writes);
    assert!(story.condition("StatusPruned").is_some());
}

// Faults: PF12
#[test]
fn what_a_crd_keeps_of_a_status_still_says_where_revisions_are() {
    let story = pruned_story(true);
    let shown = crate::pipeline::view::view(&story.object, &story.object.status, None);
    let [staging, prod] = &shown.environments[..] else { panic!("{:?}", shown.environments) };
    assert_eq!((&staging.revisions[..], staging.unsettled.as_deref()), (&[Revision("2".to_owned())][..], None));
    assert_eq!(prod.revisions, [Revision("1".to_owned())]);
    assert!(prod.waits.as_ref().is_some_and(|words| words.contains("drops what allclear must remember")), "{prod:?}");
    assert!(prod.next.contains("allclear pipeline poke shop/web"), "{prod:?}");
}

#[test]
fn a_poke_ends_the_rest_after_a_write_that_failed() {
    let mut story = Story::new(spec(true));
    story.failing = true;
    story.show("staging", at("2"));
    story.pass(Duration::from_mins(10));
    story.failing = false;
    let writes = story.writes;
    story.pass(Duration::from_millis(100));
    assert_eq!(story.writes, writes, "it rests");
    story.change(|object| object.answers.poked = Some("now".to_owned()));
    assert!(story.writes > writes && story.ticket().is_some());
}

#[test]
fn nothing_starts_in_a_pipeline_that_a_finalizer_holds_and_it_says_why() {
    let mut story = Story::new(spec(false));
    story.change(|object| object.deleting = true);
    story.show("staging", at("2"));
    story.pass(MINUTE);
    assert_eq!(story.count(Kind::PromotionStarted), 0);
    assert!(story.condition("GateClosed").is_some_and(|words| words.ends_with("being deleted")));
}

#[test]
fn an_object_that_is_gone_ends_its_machine_after_a_look() {
    let mut story = Story::new(spec(false));
    story.asked.clear();
    story.feed(Event::Object(Life::Missed));
    assert!(matches!(&story.asked[..], [Effect::Object(Own::Look)]));
    story.feed(Event::Object(Life::Looked(None)));
    assert!(matches!(&story.asked[..], [Effect::Object(Own::Look), Effect::Object(Own::End)]));
    assert_eq!(story.machine.next_deadline(), None);
}
