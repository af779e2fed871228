//! `allclear group leave`: this cluster waits for no other member from then on (decision 56).

use std::collections::BTreeSet;

use super::{grouped, open_votes};
use crate::cli::answer::{Outcome, done, refused};
use crate::cli::consent::Consent;
use crate::looking::listen::listen;
use crate::looking::page::count;
use crate::looking::{Section, Sources, peek};
use kernel::id::Member;
use purge::agreement::roster::{Pin, listed};

/// Takes all others out of the members that the ledger has, if the person who asks agrees. Exit codes: 0 left; 1 not done.
pub(crate) async fn leave(sources: &Sources, consent: Consent) -> Outcome {
    let (neighbours, own) = match grouped(sources) {
        Ok(grouped) => grouped,
        Err(why) => return refused(&why),
    };
    if neighbours.boards.len() > 1 || !neighbours.members.is_empty() {
        return refused(
            "group.remotes (REMOTE_REDIS_HOSTS) or group.members still names other members, so this cluster would join them again: \
             take both out of the configuration, restart the controller, which then holds, and run this again",
        );
    }
    let ledgered = match peek(sources).await {
        Section::Known(ledgered) => ledgered,
        Section::Missing { missing } => return refused(&missing),
    };
    let Some(pin) = ledgered.pin.clone().filter(|pin| pin.names_others(own)) else {
        return refused("the ledger has no other member, so there is no group to leave");
    };
    let others: BTreeSet<Member> = pin.members.iter().filter(|member| *member != own).cloned().collect();
    let next = Pin { members: BTreeSet::from([own.clone()]), of: 1, ..pin.without(&others) };
    let heard = listen(neighbours, own, Some(&ledgered), &sources.policy).await;
    let mut lines = vec![
        format!("In the ledger in {}, the entry of the members becomes", sources.ledger_place),
        format!("  {}", listed(&next.members)),
        format!("instead of {}.", listed(&pin.members)),
        format!(
            "From then on this cluster purges when it is complete itself, and no longer waits for {}.",
            listed(&others)
        ),
        format!("They wait for {own} until each of them has run allclear group forget {own}."),
        format!("It is called {own} there: set group.member = \"{own}\" here if it is to keep that name."),
    ];
    let open = open_votes(heard, &ledgered, &others);
    if !open.is_empty() {
        lines.push(format!("{} the others:", count(open.len(), "open vote contains", "open votes contain")));
        lines.extend(open.into_iter().map(|(workload, what)| format!("  {}: {what}", workload.display_name())));
    }
    if let Err(left) = consent.ask(&(lines.join("\n") + "\n")) {
        return left;
    }
    match sources.ledger.store_pin(&next, Some(&pin)).await {
        Ok(true) => {
            done(format!("{own} has left the group\nnow run allclear group forget {own} in {}\n", listed(&others)))
        }
        Ok(false) => refused(
            "nothing was changed: the members in the ledger changed at the same moment; look again with allclear group show",
        ),
        Err(error) => refused(&error.to_string()),
    }
}
