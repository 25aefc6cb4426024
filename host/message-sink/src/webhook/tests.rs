//! Tests of what a receiver has of items in effect, whatever happens to calls and to those who make them.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::tests::{delivery, record};
use crawler_fetch::http::FetchSettings;
use crawler_fetch::http::post::PostClient;
use crawler_model::frontier::SinkMark;
use crawler_process::clock::SystemClock;
use crawler_process::task::TaskScope;
use crawler_sink::selection::Selection;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Reaction of a receiver to a call.
#[derive(Debug, Clone, Copy)]
enum Reply {
    /// It takes the items.
    Take,
    /// It takes the items, and its answer is lost.
    Lose,
    /// It closes the connection without a look at the items.
    Reset,
    /// It refuses the items with this status, and this `Retry-After` unless it is 0.
    Refuse(u16, u32),
    /// It takes no more than this number of items.
    AtMost(usize),
    /// It never answers.
    Hang,
}

/// Call that a receiver has heard.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Heard {
    id: String,
    keys: Vec<String>,
}

/// State of a receiver, which keeps the ids that it has seen.
#[derive(Default)]
struct Books {
    replies: VecDeque<Reply>,
    heard: Vec<Heard>,
    ids: BTreeSet<String>,
    keys: Vec<String>,
}

/// Receiver that replies as it is told, and takes all items after that.
struct FakeReceiver {
    address: SocketAddr,
    books: Arc<Mutex<Books>>,
    _tasks: TaskScope,
}

impl FakeReceiver {
    async fn replying(replies: &[Reply]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let books = Arc::new(Mutex::new(Books {
            replies: replies.iter().copied().collect(),
            ..Books::default()
        }));
        let tasks = TaskScope::new();
        let kept = books.clone();
        tasks.spawn("receiver", async move {
            let mut hung = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                let answer = kept.lock().unwrap().answer(&request);
                match answer {
                    Some(answer) if answer.is_empty() => hung.push(stream),
                    Some(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
                    None => {}
                }
            }
        });
        Self {
            address,
            books,
            _tasks: tasks,
        }
    }

    fn sinks(&self, settings: WebhookSettings) -> WebhookSinks {
        let url = format!("http://{}/hook", self.address).parse().unwrap();
        let networks = vec!["127.0.0.0/8".parse::<ipnet::IpNet>().unwrap()];
        let client = PostClient::new(url, networks, FetchSettings::default());
        let client = WebhookClient {
            client: client.unwrap(),
            keys: vec![SECRET.parse().unwrap()],
            timeout: Duration::from_secs(5),
            table: "sink",
            clock: Arc::new(SystemClock),
        };
        WebhookSinks::new(client, "http://hooks.test".to_owned(), settings).unwrap()
    }

    /// Returns the keys of the items that it has in effect, in order.
    fn keys(&self) -> Vec<String> {
        self.books.lock().unwrap().keys.clone()
    }

    fn heard(&self) -> Vec<Heard> {
        self.books.lock().unwrap().heard.clone()
    }
}

impl Books {
    /// Returns the answer to a call: none if the connection is closed, an empty one if there never is one.
    fn answer(&mut self, request: &str) -> Option<String> {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let header = |name: &str| {
            let mut values = head.lines().filter_map(|line| line.split_once(": "));
            let found = values.find(|(known, _)| *known == name);
            found.map(|(_, value)| value.to_owned()).unwrap()
        };
        let at = header("webhook-timestamp").parse().unwrap();
        let key: crawler_fetch::webhook::SigningKey = SECRET.parse().unwrap();
        let id = header("idempotency-key");
        assert_eq!(header("webhook-id"), id);
        let signature = key.sign(&id, at, body.as_bytes());
        assert_eq!(header("webhook-signature"), signature);
        let records: Vec<ItemRecord> = match header("content-type").as_str() {
            "application/json" => serde_json::from_str(body).unwrap(),
            _ => {
                let lines = body.lines();
                lines
                    .map(|line| serde_json::from_str(line).unwrap())
                    .collect()
            }
        };
        assert_eq!(header("crawler-items"), records.len().to_string());
        let keys: Vec<String> = records.into_iter().map(|record| record.key.0).collect();
        self.heard.push(Heard {
            id: id.clone(),
            keys: keys.clone(),
        });
        let reply = self.replies.pop_front().unwrap_or(Reply::Take);
        let is_taken = match reply {
            Reply::Take | Reply::Lose => true,
            Reply::AtMost(n) => {
                self.replies.push_front(reply);
                keys.len() <= n
            }
            Reply::Reset | Reply::Refuse(..) | Reply::Hang => false,
        };
        if is_taken && self.ids.insert(id) {
            self.keys.extend(keys);
        }
        let answer = |status: u16, rest: &str| {
            Some(format!(
                "HTTP/1.1 {status} So\r\nconnection: close\r\n{rest}content-length: 0\r\n\r\n"
            ))
        };
        match reply {
            Reply::Hang => Some(String::new()),
            Reply::Lose | Reply::Reset => None,
            Reply::Refuse(status, 0) => answer(status, ""),
            Reply::Refuse(status, wait) => answer(status, &format!("retry-after: {wait}\r\n")),
            Reply::AtMost(_) if !is_taken => answer(413, ""),
            Reply::Take | Reply::AtMost(_) => answer(200, ""),
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        if stream.read_buf(&mut request).await.unwrap() == 0 {
            return text;
        }
    }
}

fn records(range: Range<u32>) -> Vec<ItemRecord> {
    range.map(|n| record(n, "{\n\"a\": \"x,y\"}")).collect()
}

fn keys(range: Range<u32>) -> Vec<String> {
    range.map(|n| format!("key-{n}")).collect()
}

/// Frontier of a shard with these items, which keeps the mark and the position of the sink.
struct Outbox {
    items: Vec<ItemRecord>,
    position: usize,
    marks: Vec<SinkMark>,
}

impl Outbox {
    fn of(n_items: u32) -> Self {
        Self {
            items: records(0..n_items),
            position: 0,
            marks: Vec::new(),
        }
    }

    async fn open(&self, sinks: &WebhookSinks) -> Box<dyn Sink> {
        let delivery = Delivery {
            marks: self.marks.clone(),
            ..delivery()
        };
        sinks.open(&delivery).await.unwrap()
    }

    /// Makes one write of at most `n_given` items. Returns the words of its error.
    async fn write(&mut self, sink: &mut Box<dyn Sink>, n_given: usize) -> Option<String> {
        let end = self.items.len().min(self.position + n_given);
        let given = &self.items[self.position..end];
        match sink.write(self.position as u64, given).await {
            Ok(written) if written.n_items > given.len() as u64 => None,
            Ok(written) => {
                self.position += written.n_items as usize;
                if let Some(mark) = written.mark {
                    self.marks = vec![mark];
                }
                None
            }
            Err(SinkError::Retry { message, .. }) => Some(message),
            Err(error) => panic!("{error}"),
        }
    }

    /// Makes writes until all items are written. Returns the words of the errors.
    async fn drain(&mut self, sink: &mut Box<dyn Sink>) -> Vec<String> {
        let mut errors = Vec::new();
        while self.position < self.items.len() {
            assert!(errors.len() < 100, "{errors:?}");
            errors.extend(self.write(sink, usize::MAX / 2).await);
        }
        errors
    }
}

fn few(batch_items: usize) -> WebhookSettings {
    WebhookSettings {
        batch_items,
        ..WebhookSettings::default()
    }
}

#[tokio::test]
async fn each_item_is_posted_in_order_in_signed_batches() {
    for format in [PostFormat::Lines, PostFormat::Array] {
        let receiver = FakeReceiver::replying(&[]).await;
        let sinks = receiver.sinks(WebhookSettings { format, ..few(2) });
        let mut outbox = Outbox::of(5);
        let mut sink = outbox.open(&sinks).await;
        assert_eq!(sink.write(0, &[]).await.unwrap(), Written::default());
        assert_eq!(outbox.drain(&mut sink).await, [""; 0]);
        assert_eq!(receiver.keys(), keys(0..5));
        let heard = receiver.heard();
        let lengths: Vec<usize> = heard.iter().map(|heard| heard.keys.len()).collect();
        assert_eq!(lengths, [2, 2, 1]);
        let mark = outbox.marks.pop().unwrap();
        assert_eq!(Plan::pending(&[mark]).unwrap(), None);
    }
}

#[tokio::test]
async fn faults_of_a_receiver_neither_lose_nor_double_an_item() {
    let faults = [
        Reply::Refuse(500, 0),
        Reply::Lose,
        Reply::Reset,
        Reply::Refuse(400, 0),
        Reply::Take,
        Reply::Lose,
        Reply::Refuse(429, 0),
        Reply::Refuse(302, 0),
    ];
    let receiver = FakeReceiver::replying(&faults).await;
    let sinks = receiver.sinks(few(3));
    let mut outbox = Outbox::of(9);
    let mut sink = outbox.open(&sinks).await;
    let errors = outbox.drain(&mut sink).await;
    assert_eq!(errors.len(), 7, "{errors:?}");
    for (error, words) in errors.iter().zip([
        "the receiver is in trouble or away (status 500)",
        "the receiver is in trouble or away (",
        "the receiver is in trouble or away (",
        "the receiver refuses the items; they wait until it takes them (status 400)",
    ]) {
        let start = format!("cannot post items to http://hooks.test: {words}");
        assert!(error.starts_with(&start), "{error}");
    }
    assert_eq!(receiver.keys(), keys(0..9));
    // Attempts of one post have one id, and no two posts have the same.
    let heard = receiver.heard();
    let posts: BTreeSet<(String, Vec<String>)> = heard
        .into_iter()
        .map(|heard| (heard.id, heard.keys))
        .collect();
    assert_eq!(posts.len(), 3);
}

#[tokio::test]
async fn whoever_goes_on_after_a_crash_sends_the_same_post() {
    // More items have come meanwhile, or fewer are given at first, and the settings are others.
    for n_given in [1, 2, 9] {
        for reply in [Reply::Lose, Reply::Reset] {
            let receiver = FakeReceiver::replying(&[reply]).await;
            let mut outbox = Outbox::of(9);
            let mut sink = outbox.open(&receiver.sinks(few(2))).await;
            assert_eq!(outbox.write(&mut sink, 2).await, None);
            assert!(receiver.heard().is_empty(), "the frontier knows it first");
            assert!(outbox.write(&mut sink, 2).await.is_some());
            let mut second = outbox.open(&receiver.sinks(few(5))).await;
            assert_eq!(second.gathering().max_wait, Duration::ZERO);
            outbox.write(&mut second, n_given).await;
            outbox.drain(&mut second).await;
            assert_eq!(receiver.keys(), keys(0..9));
            let heard = receiver.heard();
            assert_eq!(heard[0], heard[1], "{n_given} are given");
        }
    }
}

#[tokio::test]
async fn a_planned_post_is_sent_whole_behind_a_choice_of_items() {
    const N_ITEMS: u32 = 6_000;
    let receiver = FakeReceiver::replying(&[Reply::Lose]).await;
    let mut outbox = Outbox::of(N_ITEMS);
    // One of three items is chosen.
    for (n, item) in outbox.items.iter_mut().enumerate() {
        item.schema = if n % 3 == 0 { "a" } else { "b" }.to_owned();
    }
    let choice = Selection::new(vec!["kind=a".parse().unwrap()], Vec::new()).unwrap();
    let sinks = receiver.sinks(few(1_000));
    let mut sink = choice.apply(outbox.open(&sinks).await);
    outbox.write(&mut sink, 3_000).await;
    assert!(outbox.write(&mut sink, 3_000).await.is_some());
    // Whoever goes on gives few items at a time.
    let sinks = receiver.sinks(few(10));
    let mut second = choice.apply(outbox.open(&sinks).await);
    let mut n_writes = 0;
    while outbox.position < outbox.items.len() {
        n_writes += 1;
        assert!(n_writes < 10_000);
        let n_given = second.gathering().max_items.max(2_000);
        assert_eq!(outbox.write(&mut second, n_given).await, None);
    }
    let heard = receiver.heard();
    assert_eq!(heard[0], heard[1]);
    assert_eq!(heard[0].keys.len(), 1_000);
    assert_eq!(receiver.keys().len(), 2_000);
}

#[tokio::test]
async fn items_that_were_dropped_or_not_chosen_are_planned_anew() {
    let receiver = FakeReceiver::replying(&[Reply::Reset]).await;
    let sinks = receiver.sinks(few(2));
    let mut outbox = Outbox::of(6);
    let mut sink = outbox.open(&sinks).await;
    outbox.write(&mut sink, 2).await;
    outbox.write(&mut sink, 2).await;
    // The resource had lost the sink, and its items were dropped.
    outbox.position = 3;
    let mut second = outbox.open(&sinks).await;
    outbox.drain(&mut second).await;
    assert_eq!(receiver.keys(), keys(3..6));
    // Other items are chosen at the same position.
    let receiver = FakeReceiver::replying(&[Reply::Reset]).await;
    let sinks = receiver.sinks(few(2));
    let mut outbox = Outbox::of(6);
    let mut sink = outbox.open(&sinks).await;
    outbox.write(&mut sink, 2).await;
    outbox.write(&mut sink, 2).await;
    outbox.items = records(10..14);
    let mut second = outbox.open(&sinks).await;
    outbox.drain(&mut second).await;
    assert_eq!(receiver.keys(), keys(10..14));
}

#[tokio::test]
async fn a_receiver_is_left_alone_for_as_long_as_it_asks() {
    let receiver = FakeReceiver::replying(&[Reply::Refuse(429, 3_600)]).await;
    let settings = WebhookSettings {
        max_retry_wait: Duration::from_secs(1),
        ..few(9)
    };
    let sinks = receiver.sinks(settings);
    let mut outbox = Outbox::of(2);
    let mut sink = outbox.open(&sinks).await;
    outbox.write(&mut sink, 9).await;
    let error = outbox.write(&mut sink, 9).await.unwrap();
    let expected =
        "cannot post items to http://hooks.test: the receiver asks for a slower pace (status 429)";
    assert_eq!(error, expected);
    let begun = Instant::now();
    while let Some(error) = outbox.write(&mut sink, 9).await {
        assert_eq!(error, expected);
        assert_eq!(receiver.heard().len(), 1);
        assert!(begun.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(begun.elapsed() > Duration::from_millis(500));
    assert_eq!(receiver.keys(), keys(0..2));
}

#[tokio::test]
async fn a_rest_holds_for_all_shards() {
    let receiver =
        FakeReceiver::replying(&[Reply::Refuse(503, 3_600), Reply::Refuse(500, 0)]).await;
    let sinks = receiver.sinks(few(9));
    let (mut outbox, mut of_other) = (Outbox::of(2), Outbox::of(2));
    let mut sink = outbox.open(&sinks).await;
    let mut other = of_other.open(&sinks).await;
    assert_eq!(outbox.write(&mut sink, 9).await, None);
    assert_eq!(of_other.write(&mut other, 9).await, None);
    let error = outbox.write(&mut sink, 9).await;
    assert!(error.is_some());
    assert_eq!(of_other.write(&mut other, 9).await, error);
    assert_eq!(receiver.heard().len(), 1);
    let until = Instant::now();
    sinks.receiver.rest_until(until, "shorter".to_owned());
    assert_eq!(sinks.receiver.rests(), error);
}

#[tokio::test]
async fn a_post_that_is_too_large_is_sent_in_parts() {
    let receiver = FakeReceiver::replying(&[Reply::AtMost(3)]).await;
    let mut outbox = Outbox::of(20);
    let mut sink = outbox.open(&receiver.sinks(few(10))).await;
    assert_eq!(outbox.drain(&mut sink).await, [""; 0]);
    assert_eq!(receiver.keys(), keys(0..20));
    let receiver = FakeReceiver::replying(&[Reply::AtMost(0)]).await;
    let mut outbox = Outbox::of(2);
    let mut sink = outbox.open(&receiver.sinks(few(10))).await;
    let mut errors = Vec::new();
    while errors.is_empty() {
        errors.extend(outbox.write(&mut sink, 9).await);
    }
    let words = "an item is too large for the receiver; let it take larger bodies, or choose fewer fields (status 413)";
    assert!(errors[0].ends_with(words), "{errors:?}");
    // It is kept until the receiver takes it.
    receiver.books.lock().unwrap().replies.clear();
    assert_eq!(outbox.drain(&mut sink).await, [""; 0]);
    assert_eq!(receiver.keys(), keys(0..2));
}

#[tokio::test]
async fn a_receiver_that_hangs_or_is_away_is_waited_for() {
    let receiver = FakeReceiver::replying(&[Reply::Hang]).await;
    let sinks = receiver.sinks(few(9));
    let mut outbox = Outbox::of(2);
    let mut sink = outbox.open(&sinks).await;
    outbox.write(&mut sink, 9).await;
    let error = outbox.write(&mut sink, 9).await.unwrap();
    let words = "(no answer within 5s, which is timeout of the sink)";
    assert!(error.ends_with(words), "{error}");
    assert_eq!(outbox.drain(&mut sink).await, [""; 0]);
    assert_eq!(receiver.keys(), keys(0..2));
    let away = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = FakeReceiver {
        address: away.local_addr().unwrap(),
        books: Arc::default(),
        _tasks: TaskScope::new(),
    };
    drop(away);
    let sinks = gone.sinks(few(9));
    let error = sinks.check().await.unwrap_err().to_string();
    assert!(error.contains("is in trouble or away"), "{error}");
}

#[tokio::test]
async fn a_check_posts_no_item() {
    for format in [PostFormat::Lines, PostFormat::Array] {
        let receiver = FakeReceiver::replying(&[]).await;
        let sinks = receiver.sinks(WebhookSettings { format, ..few(9) });
        let checked = sinks.check().await.unwrap();
        let expected = format!("calls of http://hooks.test, each with up to 9 items as {format}");
        assert_eq!(checked.would_create, [expected]);
        let heard = receiver.heard();
        assert_eq!((heard.len(), heard[0].keys.len()), (1, 0));
    }
    let receiver = FakeReceiver::replying(&[Reply::Refuse(401, 0)]).await;
    let sinks = receiver.sinks(few(9));
    let error = sinks.check().await.unwrap_err().to_string();
    assert!(error.contains("check the secret on both sides"), "{error}");
}
