//! A promotion that is disturbed at each of its requests in turn, and repeated: whatever an answer becomes on its way, success
//! is only said of what git has, and the repetition ends with the one right commit.

use bytes::Bytes;
use forge::HttpError;
use forge::git::{Oid, Pushed, Remote};
use purge::ports::PortError;

use crate::scene::{FILE, Mangle, REPOSITORY, Scene, build};

/// Requests of a promotion that nothing disturbs.
const REQUESTS: usize = 7;

/// Everything from the first look to the push; the commit, and what became of it.
async fn promote(remote: &Remote) -> Result<(Oid, Pushed), PortError> {
    let refs = remote.refs(&["refs/heads/main", "refs/heads/promote"]).await?;
    let base = refs.branch("main").ok_or_else(|| PortError::passing("no main", ""))?;
    let mut objects = remote.fetch(&[base].into()).await?;
    let file = objects.files(base, None)?.into_iter().find(|file| file.path == FILE);
    let file = file.ok_or_else(|| PortError::passing("no file", ""))?;
    remote.load(&mut objects, base, &[file.id].into()).await?;
    assert_eq!(objects.content(file.id), Some(&b"tag: 1.0 # marker\n"[..]), "what is here is right");
    let built = build(&objects, base, base, "2.0");
    Ok((built.id, remote.push("promote", refs.branch("promote"), Some(&built)).await?))
}

/// Disturbs each request in turn in a way that may depend on a number, and repeats the promotion.
async fn disturb(ways: u64, mangle: impl Fn(u64) -> Mangle) {
    let scene = Scene::with_files().await;
    let (right, pushed) = promote(&scene.remote).await.expect("undisturbed");
    assert_eq!((pushed, scene.requests()), (Pushed::Done, REQUESTS));
    let main = scene.git(&["rev-parse", "main"]);
    let (mut harmless, mut failed) = (0, 0);
    for request in 0..REQUESTS {
        for way in 0..ways {
            scene.git(&["update-ref", "-d", "refs/heads/promote"]);
            let remote = scene.stranger(None);
            scene.http.mangle(request, mangle(way));
            let disturbed = promote(&remote).await;
            match &disturbed {
                Ok((id, Pushed::Done)) => {
                    harmless += 1;
                    assert_eq!(
                        (*id, scene.git(&["rev-parse", "promote"])),
                        (right, right.to_string()),
                        "{request}, {way}"
                    );
                }
                Ok((_, Pushed::Moved(_) | Pushed::ForwardOnly)) | Err(_) => failed += 1,
            }
            let again = promote(&remote).await;
            assert_eq!(again, Ok((right, Pushed::Done)), "{request}, {way}, after {disturbed:?}");
            assert_eq!(scene.git(&["rev-parse", "promote", "main"]), format!("{right}\n{main}"), "{request}, {way}");
        }
    }
    println!("{} disturbed promotions: {failed} failed, {harmless} went on; all repeated", harmless + failed);
    assert!(failed > 0);
    scene.host.git(REPOSITORY, &["fsck", "--strict"]).expect("sound");
}

/// The same answer with another body.
fn with_body(change: impl FnOnce(Vec<u8>) -> Vec<u8> + Send + 'static) -> Mangle {
    Box::new(|answer| Ok(answer.map(|body| Bytes::from(change(body.to_vec())))))
}

#[tokio::test]
async fn an_answer_that_is_lost_or_empty_or_a_page_is_made_good_by_repetition() {
    disturb(4, |way| match way {
        0 => Box::new(|_| Err(HttpError::Failed("lost".to_owned()))),
        1 => with_body(|_| Vec::new()),
        2 => Box::new(|mut answer| {
            *answer.status_mut() = http::StatusCode::BAD_GATEWAY;
            Ok(answer)
        }),
        _ => Box::new(|mut answer| {
            answer.headers_mut().insert("content-type", http::HeaderValue::from_static("text/html"));
            Ok(answer)
        }),
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_anywhere_is_made_good_by_repetition() {
    disturb(2, |way| {
        with_body(move |mut body| {
            let at = body.len() * usize::try_from(way + 1).expect("few") / 3;
            body.truncate(at);
            body
        })
    })
    .await;
}

#[tokio::test]
async fn an_answer_with_a_wrong_byte_is_made_good_by_repetition() {
    disturb(3, |way| {
        with_body(move |mut body| {
            let at = body.len() * usize::try_from(way).expect("few") / 3 + 7;
            if let Some(byte) = body.get_mut(at) {
                *byte ^= 1 << way;
            }
            body
        })
    })
    .await;
}
