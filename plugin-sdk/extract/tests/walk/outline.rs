//! Elements and text of a page as trees that can be compared: that of html5ever, and that of a walk.

use std::fmt;
use std::ops::ControlFlow;

use crawler_extract::walk::{Start, TextKind, Visitor, walk};
use htmlize::unescape;
use scraper::Html;

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Text(String),
    Element(String, Vec<Node>),
}

/// Writes `ul(li(a) li(b))`, for messages.
impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Node::Text(text) => write!(f, "{text:?}"),
            Node::Element(name, children) => {
                f.write_str(name)?;
                f.debug_list().entries(children).finish()
            }
        }
    }
}

/// Adds a node, and joins adjacent texts.
pub(crate) fn add(nodes: &mut Vec<Node>, node: Node) {
    match (nodes.last_mut(), node) {
        (Some(Node::Text(before)), Node::Text(text)) => before.push_str(&text),
        (_, Node::Text(text)) if text.is_empty() => {}
        (_, node) => nodes.push(node),
    }
}

/// Returns the nodes with some elements replaced by their content.
pub(crate) fn unwrap(nodes: Vec<Node>, gone: &dyn Fn(&str, &str) -> bool) -> Vec<Node> {
    fn into(
        out: &mut Vec<Node>,
        parent: &str,
        nodes: Vec<Node>,
        gone: &dyn Fn(&str, &str) -> bool,
    ) {
        for node in nodes {
            match node {
                Node::Element(name, children) if gone(parent, &name) => {
                    into(out, parent, children, gone);
                }
                Node::Element(name, children) => {
                    let mut inside = Vec::new();
                    into(&mut inside, &name, children, gone);
                    add(out, Node::Element(name, inside));
                }
                text => add(out, text),
            }
        }
    }
    let mut out = Vec::new();
    into(&mut out, "", nodes, gone);
    out
}

/// Returns the content of `html`, `head` and `body`, which the walk does not add. The content of templates is left
/// out, since nothing of it is matched.
fn content(nodes: Vec<Node>) -> Vec<Node> {
    let nodes = unwrap(nodes, &|_, name| matches!(name, "html" | "head" | "body"));
    without_templates(nodes)
}

fn without_templates(nodes: Vec<Node>) -> Vec<Node> {
    let inside = |node| match node {
        Node::Element(name, _) if name == "template" => Node::Element(name, Vec::new()),
        Node::Element(name, children) => Node::Element(name, without_templates(children)),
        text => text,
    };
    nodes.into_iter().map(inside).collect()
}

/// Returns the tree of html5ever.
pub(crate) fn browser(page: &str) -> Vec<Node> {
    let page = Html::parse_document(page);
    let mut nodes = Vec::new();
    // Open elements, each with its depth and the nodes before it.
    let mut open: Vec<(usize, String, Vec<Node>)> = Vec::new();
    let close = |nodes: &mut Vec<Node>, (_, name, outside): (usize, String, Vec<Node>)| {
        let children = std::mem::replace(nodes, outside);
        add(nodes, Node::Element(name, children));
    };
    for node in page.tree.root().descendants() {
        let depth = node.ancestors().count();
        while let Some(done) = open.pop_if(|(open, ..)| *open >= depth) {
            close(&mut nodes, done);
        }
        match node.value() {
            scraper::Node::Text(text) => add(&mut nodes, Node::Text(text.to_string())),
            scraper::Node::Element(element) => {
                let name = element.name().to_ascii_lowercase();
                open.push((depth, name, std::mem::take(&mut nodes)));
            }
            // The content of a template is in a fragment, which is left out.
            _ => {}
        }
    }
    while let Some(done) = open.pop() {
        close(&mut nodes, done);
    }
    content(nodes)
}

/// Returns the tree that a walk tells.
pub(crate) fn told(page: &str) -> Vec<Node> {
    let mut builder = Builder::default();
    walk(page, &mut builder).expect("little is open");
    assert!(
        builder.open.is_empty(),
        "what begins ends: {:?}",
        builder.open
    );
    content(builder.nodes)
}

#[derive(Default)]
struct Builder {
    nodes: Vec<Node>,
    /// Open elements, each with the children of the element around it.
    open: Vec<(String, Vec<Node>)>,
}

impl<'p> Visitor<'p> for Builder {
    fn start(&mut self, element: &Start<'p>) {
        let name = element.name().to_ascii_lowercase();
        if element.has_content() {
            self.open.push((name, std::mem::take(&mut self.nodes)));
        } else {
            add(&mut self.nodes, Node::Element(name, Vec::new()));
        }
    }

    fn end(&mut self, _: usize) {
        let (name, outside) = self.open.pop().expect("what ends has begun");
        let children = std::mem::replace(&mut self.nodes, outside);
        add(&mut self.nodes, Node::Element(name, children));
    }

    fn text(&mut self, text: &'p str, kind: TextKind) {
        let text = match kind {
            TextKind::Encoded => unescape(text).into_owned(),
            TextKind::Literal | TextKind::Raw => text.to_owned(),
        };
        add(&mut self.nodes, Node::Text(text));
    }

    fn reached(&mut self, _: usize) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
