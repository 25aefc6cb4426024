//! The chapter about gRPC names every service, call, message and field, with the comments of the `.proto` file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto, ServiceDescriptorProto,
};

use crawler_testing::book::{cell, check, code};

/// Numbers of the fields of descriptors that make up the path to a comment.
const MESSAGES: i32 = 4;
const SERVICES: i32 = 6;
const MEMBERS: i32 = 2;

/// Comments by the path to what they are about.
struct Comments(BTreeMap<Vec<i32>, String>);

impl Comments {
    fn of(file: &FileDescriptorProto) -> Self {
        let info = file.source_code_info.as_ref();
        let locations = info.map_or(&[][..], |info| &info.location);
        let comments = locations.iter().filter_map(|location| {
            let comment = location.leading_comments.as_ref()?;
            Some((location.path.clone(), cell(comment)))
        });
        Self(comments.collect())
    }

    fn at(&self, path: &[i32]) -> &str {
        self.0.get(path).map_or("", String::as_str)
    }
}

#[test]
fn the_book_has_every_call_and_message_of_grpc() {
    let set = FileDescriptorSet::decode(crawler_proto::FILE_DESCRIPTOR_SET).unwrap();
    let file = set.file.iter().find(|file| file.name() == "crawler.proto");
    let file = file.expect("the descriptors have it");
    let comments = Comments::of(file);
    let services: String = (file.service.iter().zip(0..))
        .map(|(described, n)| service(described, n, &comments))
        .collect();
    check("reference/grpc.md", "services", &services);
    let messages: String = (file.message_type.iter().zip(0..))
        .map(|(described, n)| message(described, n, &comments))
        .collect();
    check("reference/grpc.md", "messages", &messages);
}

fn service(service: &ServiceDescriptorProto, n: i32, comments: &Comments) -> String {
    let mut text = format!(
        "\n## {}\n\n{}\n\n| call | request | answer | what it does |\n|---|---|---|---|\n",
        service.name(),
        comments.at(&[SERVICES, n])
    );
    for (method, nth) in service.method.iter().zip(0..) {
        let comment = comments.at(&[SERVICES, n, MEMBERS, nth]);
        assert!(!comment.is_empty(), "{} has no comment", method.name());
        text.push_str(&call(method, comment));
    }
    text
}

fn call(method: &MethodDescriptorProto, comment: &str) -> String {
    let side = |name: &str, is_stream| match is_stream {
        true => format!("stream of {}", link(name)),
        false => link(name),
    };
    format!(
        "| `{}` | {} | {} | {comment} |\n",
        method.name(),
        side(method.input_type(), method.client_streaming()),
        side(method.output_type(), method.server_streaming()),
    )
}

fn message(message: &DescriptorProto, n: i32, comments: &Comments) -> String {
    let mut text = format!("\n### {}\n", message.name());
    let comment = comments.at(&[MESSAGES, n]);
    if !comment.is_empty() {
        let _ = write!(text, "\n{comment}\n");
    }
    if message.field.is_empty() {
        text.push_str("\nIt has no fields.\n");
        return text;
    }
    text.push_str("\n| field | type | meaning |\n|---|---|---|\n");
    for (field, nth) in message.field.iter().zip(0..) {
        let meaning = comments.at(&[MESSAGES, n, MEMBERS, nth]);
        let kind = kind(field, message);
        let _ = writeln!(text, "| `{}` | {kind} | {meaning} |", field.name());
    }
    text
}

/// Returns the type of a field as the file writes it.
fn kind(field: &FieldDescriptorProto, message: &DescriptorProto) -> String {
    let is_map = |nested: &&DescriptorProto| {
        let name = format!(".{}.{}", message.name(), nested.name());
        field.type_name() == name
    };
    if let Some(entry) = message.nested_type.iter().find(is_map) {
        let sides: Vec<String> = entry.field.iter().map(|side| kind(side, entry)).collect();
        return format!("map of {}", sides.join(" to "));
    }
    let kind = match field.r#type() {
        Type::Message => link(field.type_name()),
        scalar => {
            let name = scalar.as_str_name().trim_start_matches("TYPE_");
            code(&name.to_lowercase())
        }
    };
    match field.label() {
        Label::Repeated => format!("repeated {kind}"),
        _ if field.proto3_optional() => format!("optional {kind}"),
        _ => kind,
    }
}

/// Returns a link to the section of a message; the names of others are text.
fn link(name: &str) -> String {
    let name = name.trim_start_matches('.');
    match name.contains('.') {
        true => code(name),
        false => format!("[`{name}`](#{})", name.to_lowercase()),
    }
}
