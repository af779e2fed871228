//! Commits that an SSH key signs, as git itself sees them.

use std::process::Command;

use objects::pipeline::proposal::{ForgeKind, Proposed, RequestState};
use objects::ports::pipeline::Forge;

use super::desk::{Desk, FILE, HEAD, PASSWORD, REPOSITORY, VALUES};

/// A private key of `ssh-keygen`, and the public one.
fn key() -> (Vec<u8>, String) {
    let folder = tempfile();
    let file = folder.join("key");
    let arguments = ["-q", "-t", "ed25519", "-N", "", "-C", "bot", "-f"];
    let made = Command::new("ssh-keygen").args(arguments).arg(&file).status();
    assert!(made.expect("ssh-keygen is missing: install openssh-client").success());
    let read = |name: &str| std::fs::read(folder.join(name)).expect("a key");
    let (secret, public) = (read("key"), String::from_utf8(read("key.pub")).expect("text"));
    std::fs::remove_dir_all(&folder).expect("removed");
    (secret, public)
}

fn tempfile() -> std::path::PathBuf {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::SeqCst);
    let folder = std::env::temp_dir().join(format!("allclear-signed-{}-{number}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    folder
}

/// Whether git believes the head of the promotion's branch, if these belong to `bot@example.com`.
fn verified(desk: &Desk, public: &str) -> Result<String, String> {
    let folder = tempfile();
    let signers = folder.join("signers");
    std::fs::write(&signers, format!("bot@example.com {public}")).expect("written");
    let option = format!("gpg.ssh.allowedSignersFile={}", signers.display());
    let said = desk.git.git(REPOSITORY, &["-c", &option, "log", "-1", "--format=%G? %GS|%cn <%ce>|%an", HEAD]);
    std::fs::remove_dir_all(&folder).expect("removed");
    let said = said.map_err(|error| error.to_string())?;
    if said.starts_with('G') { Ok(said) } else { Err(said) }
}

#[tokio::test]
async fn git_verifies_what_a_promotion_commits_and_the_same_order_makes_the_same_commit() {
    let mut desk = Desk::new(ForgeKind::GitHub).await;
    let ((secret, public), (_, stranger)) = (key(), key());
    desk.secrets.set("signingKey", Some(&secret));
    let order = desk.order(1, "1.2.3");
    let request = desk.opened(&order).await;
    let said = verified(&desk, &public).expect("verified");
    assert!(said.contains("|allclear <allclear@users.noreply.allclear.dev>|allclear"), "{said}");
    assert!(verified(&desk, &stranger).is_err(), "by another's key");
    let tip = desk.tip();
    desk.restart();
    assert_eq!((desk.opened(&order).await, desk.tip()), (request, tip), "after a restart");
}

#[tokio::test]
async fn a_promotion_is_ours_also_under_a_committer_of_its_secret() {
    let desk = Desk::new(ForgeKind::Gitea).await;
    let (secret, public) = key();
    desk.secrets.set("signingKey", Some(&secret));
    desk.secrets.set("committer", Some(b"A Bot <bot@example.com>\n"));
    let order = desk.order(1, "1.2.3");
    desk.opened(&order).await;
    let said = verified(&desk, &public).expect("verified");
    assert_eq!(said, "G bot@example.com|A Bot <bot@example.com>|allclear");
    desk.git.commit(REPOSITORY, "main", &[(FILE, format!("{VALUES}other: 2\n").as_bytes())]).expect("a commit");
    assert_eq!(desk.forges.look(&order, 1).await, Ok(RequestState::Open));
    assert_eq!(desk.git(&["rev-parse", &format!("{HEAD}^")]), desk.git(&["rev-parse", "main"]), "it is made anew");
    assert_eq!(desk.opened(&desk.order(2, "1.2.4")).await.number, 1, "a later one takes it over");
    desk.secrets.set("committer", Some(b"B Bot <b@example.com>"));
    let foreign = desk.forges.propose(&desk.order(3, "1.2.5")).await;
    assert!(matches!(foreign, Ok(Proposed::Foreign(_))), "the committer is another one: {foreign:?}");
    desk.secrets.set("committer", None);
    desk.secrets.set("signingKey", Some(PASSWORD.as_bytes()));
    let refused = desk.forges.propose(&desk.order(3, "1.2.5")).await.expect_err("no key");
    assert!(refused.cause.contains("signingKey") && !refused.to_string().contains(PASSWORD), "{refused}");
}
