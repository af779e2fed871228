//! What others write on the board: forged, damaged, foreign. One bad copy is said in words and costs nobody else.

use purge::ports::{Board, Cursor, Posted};
use purge::records::record::RECORD_BYTES_MAX;
use purge::records::record_codec::encode;
use support::redis::Redis;

use super::Bench as _;
use super::contract::{app, beat, heard, newer, post, read, record, show, web};
use super::redis::{KEY, board, board_at};

const SECRET: &str = "never-to-be-shown";

#[tokio::test]
async fn a_forged_copy_is_not_believed_and_is_replaced_by_its_owner() {
    let redis = Redis::start();
    let (one, two) = (board_at(&redis.url(), "eu-1", Some("key")), board_at(&redis.url(), "eu-2", Some("key")));
    post(&one, "a", show(1, 1)).await;
    let mac: String = redis.command(&["HGET", KEY, "mac"]);
    assert_eq!(mac.len(), 64);
    let later = encode(&record(1, 9)).unwrap();
    let hset = |words: &[&str]| redis.command::<i64>(&[&["HSET", KEY], words].concat());
    for (forgery, words) in [
        (&["body", later.as_str()][..], "wrongly signed"),
        (&["body", later.as_str(), "rev", "9", "seq", "99999999999999999999999999"], "wrongly signed"),
        (&["org", SECRET], "wrongly signed"),
        (&["mac", SECRET], "wrongly signed"),
        (&["mac", ""], "not signed"),
    ] {
        hset(forgery);
        let news = read(&two, &mut Cursor::default()).await;
        assert_eq!(news.heard, [], "{forgery:?}");
        assert_eq!(news.rejected.len(), 1, "{forgery:?}");
        let said = &news.rejected[0];
        assert!(
            said.contains(words) && said.contains("eu-1's deployment/shop/web") && !said.contains(SECRET),
            "{said}"
        );
        assert_eq!(post(&one, "a", show(1, 1)).await, Posted::Current);
        assert_eq!(read(&two, &mut Cursor::default()).await.heard, [heard("a", show(1, 1))], "{forgery:?}");
    }
    // An old body, signed once, at a later state's fields: it is what its body says.
    post(&one, "a", show(1, 2)).await;
    hset(&["body", &encode(&record(1, 1)).unwrap(), "mac", &mac, "rev", "77"]);
    assert_eq!(read(&two, &mut Cursor::default()).await.heard, [heard("a", show(1, 1))]);
    assert_eq!(post(&one, "a", show(1, 2)).await, Posted::Current);
    // One of ours that is newer is, whoever asks.
    assert_eq!(post(&board_at(&redis.url(), "eu-1", Some("key")), "a", show(1, 1)).await, newer(1, 2));
}

#[tokio::test]
async fn members_with_and_without_a_key_say_so_and_do_not_believe_each_other() {
    let redis = Redis::start();
    let (open, keyed) = (board(&redis, "eu-1"), board_at(&redis.url(), "eu-2", Some("key")));
    let other = board_at(&redis.url(), "eu-3", Some("another key"));
    for (board, member) in [(&open, "eu-1"), (&keyed, "eu-2"), (&other, "eu-3")] {
        post(board, "a", show(1, 1)).await;
        board.beat(&beat(member, 1)).await.unwrap();
    }
    for (board, own, first, second) in [
        (&open, "eu-1", "signed, but this member has no key", "signed, but this member has no key"),
        (&keyed, "eu-2", "not signed, and this member has a key", "wrongly signed"),
    ] {
        let news = read(board, &mut Cursor::default()).await;
        assert_eq!(news.heard, []);
        assert_eq!(news.beats.iter().map(|beat| beat.member.0.as_str()).collect::<Vec<_>>(), [own]);
        for words in [first, second] {
            for about in ["copy of", "beat of"] {
                let said = |said: &&String| said.contains(words) && said.contains(about);
                assert!(news.rejected.iter().any(|rejected| said(&rejected)), "{words}: {:?}", news.rejected);
            }
        }
        assert_eq!(news.rejected.len(), 4, "{:?}", news.rejected);
    }
    // Our own beat from before we had a key is not taken for ours.
    assert_eq!(board_at(&redis.url(), "eu-1", Some("key")).beat(&beat("eu-1", 2)).await.unwrap(), None);
    // A key that was given to this member brings its copies up to date, although no record has changed.
    assert_eq!(post(&board_at(&redis.url(), "eu-1", Some("key")), "a", show(1, 1)).await, Posted::Current);
    assert_eq!(read(&keyed, &mut Cursor::default()).await.heard, [heard("a", show(1, 1))]);
}

// Faults: T13
#[tokio::test]
async fn what_is_no_record_costs_nobody_else() {
    let redis = Redis::start();
    let (one, two) = (board(&redis, "eu-1"), board(&redis, "eu-2"));
    let some: Vec<_> = (0..9).map(|number| (app(number), show(1, 1))).collect();
    one.post(&"a".into(), &some).await.unwrap();
    let key = |number: usize| format!("allclear:{{default}}:rec:eu-1:{}", app(number));
    let long = "x".repeat(RECORD_BYTES_MAX + 1_000);
    let body = |number: usize, body: &str| redis.command::<i64>(&["HSET", &key(number), "body", body]);
    redis.command::<()>(&["SET", &key(0), SECRET]);
    body(1, &long);
    body(2, SECRET);
    body(3, &format!(r#"{{"r":"{SECRET}"}}"#));
    body(4, r#"{"z":9,"r":1}"#);
    body(5, "gone with the wind");
    redis.command::<i64>(&["HSET", &key(6), "org", &long]);
    redis.command::<i64>(&["ZADD", "allclear:{default}:index:eu-1", "3", SECRET, "4", &long]);
    redis.command::<i64>(&["SADD", "allclear:{default}:members", "no name", &long, "eu-9"]);
    redis.command::<()>(&["SET", "allclear:{default}:hb:eu-1", SECRET]);
    redis.command::<i64>(&["RPUSH", "allclear:{default}:hb:eu-9", SECRET]);
    redis.command::<()>(&["SET", "allclear:{default}:stamp:eu-9", SECRET]);
    let mut cursor = Cursor::default();
    let news = read(&two, &mut cursor).await;
    assert_eq!(news.heard.iter().map(|heard| &heard.workload).collect::<Vec<_>>(), [&app(7), &app(8)]);
    for (words, times) in [
        ("WRONGTYPE", 2),
        ("longer than any", 2),
        ("neither a record nor the end of one", 3),
        ("a record of form 9", 1),
        ("name", 3),
        ("not a beat", 1),
    ] {
        let about = news.rejected.iter().filter(|said| said.contains(words)).count();
        assert_eq!(about, times, "{words} in {:#?}", news.rejected);
    }
    assert!(news.rejected.iter().all(|said| !said.contains(SECRET) && said.len() < 300), "{:#?}", news.rejected);

    // Its owner is told of the one that another program holds, and all others are as they were.
    let answers = one.post(&"a".into(), &some).await.unwrap();
    assert!(matches!(&answers[0], Posted::Refused(why) if why.starts_with("WRONGTYPE: ")), "{answers:?}");
    assert!(answers[1..].iter().all(|posted| *posted == Posted::Current), "{answers:?}");
    assert_eq!(redis.command::<String>(&["GET", &key(0)]), SECRET, "we delete nothing");
    assert_eq!(read(&two, &mut cursor).await.heard.len(), 6);
}

#[tokio::test]
async fn a_foreign_key_in_the_place_of_an_index_is_said_and_hides_one_member() {
    let redis = Redis::start();
    let (one, two, three) = (board(&redis, "eu-1"), board(&redis, "eu-2"), board(&redis, "eu-3"));
    post(&one, "a", show(1, 1)).await;
    three.post(&"c".into(), &[(web(), show(1, 1))]).await.unwrap();
    redis.command::<()>(&["SET", "allclear:{default}:index:eu-3", SECRET]);
    let mut cursor = Cursor::default();
    for _ in 0..2 {
        let news = read(&two, &mut cursor).await;
        assert!(news.heard.iter().all(|heard| heard.member.0 == "eu-1"));
        assert!(news.rejected.iter().any(|said| said.contains("index of eu-3: WRONGTYPE")), "{:?}", news.rejected);
    }
    let error = three.post(&"c".into(), &[(web(), show(1, 2))]).await.unwrap_err();
    assert!(error.cause.starts_with("WRONGTYPE: "), "{error}");
    redis.command::<()>(&["DEL", "allclear:{default}:index:eu-3"]);
    three.post(&"c".into(), &[(web(), show(1, 1))]).await.unwrap();
    assert_eq!(read(&two, &mut cursor).await.heard.len(), 1);
    redis.wipe();
}
