//! The site is looked for before a vote.

use super::*;
use crate::site::Age;

/// What was known before the rollout does not close it: routes of a Gateway API that was installed meanwhile, say.
#[test]
fn a_rollout_is_closed_for_want_of_hosts_only_after_a_fresh_look() {
    let asked = |story: &Story| {
        let ages = story.effects.iter().filter_map(|effect| match effect {
            Effect::FindSite(_, age) => Some(*age),
            _ => None,
        });
        ages.collect::<Vec<_>>()
    };
    let begin = || {
        let mut story = Story::begin(complete("a", 1));
        story.held = ["find_site"].into();
        story.see(complete("b", 2));
        story.step(Event::SiteFound(FoundSite::default()));
        assert_eq!(asked(&story), [Age::Recent, Age::Fresh]);
        assert_eq!(story.last(), None);
        story
    };
    let mut nothing = begin();
    nothing.step(Event::SiteFound(FoundSite::default()));
    assert_eq!((asked(&nothing).len(), nothing.last()), (2, Some(&Outcome::NoSite)));

    let mut found = begin();
    let origins = BTreeSet::from(["lb.example.net".to_owned()]);
    found.step(Event::SiteFound(FoundSite { origins, ..FoundSite::default() }));
    assert_eq!((asked(&found).len(), found.last()), (2, Some(&Outcome::Purged)));
}
