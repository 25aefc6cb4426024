//! `output`: items and requests, checked one by one, and held back until the call succeeds.

use std::sync::Arc;

use crawler_schema::{JsonSchema, Unfit, check_object};

use super::fuel::{PER_JSON_BYTE, PER_REQUEST};
use super::reads::Reading;
use super::request;
use super::state::{CallEnded, CallKind, CallState};
use super::texts::up_to;
use crate::bindings::crawler::rules::output;
use crate::bindings::crawler::rules::types::{ExtractError, FollowOptions, OutputError, Request};
use crawler_model::crawl::{Item, Kill, REQUEST_BYTES_MAX};
use crawler_model::plugin::{Description, LimitName};
use crawler_process::stage::Stage;

/// Number of refused host calls after which the rule is ended: each one is cheap for the guest and not for
/// the host.
const REFUSED_MAX: u32 = 100;

impl output::Host for CallState {
    fn emit(&mut self, schema: u32, json: String) -> wasmtime::Result<Result<(), OutputError>> {
        self.charge(json.len())?;
        self.meter.charge(PER_JSON_BYTE * json.len() as u64);
        self.check_fuel()?;
        let description = self.described("emitted an item")?;
        let checked = self.checked_item(&description, schema, json);
        // Checking the shape has its price too.
        self.check_fuel()?;
        match checked {
            Ok(item) => {
                self.usage.item_bytes += item.json.len() as u64;
                self.output.items.push(item);
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(self.refuse(error)?)),
        }
    }

    fn follow(&mut self, requests: Vec<Request>) -> wasmtime::Result<Result<(), OutputError>> {
        let n_bytes = requests.iter().map(request::n_bytes).sum();
        self.charge(n_bytes)?;
        self.meter.charge(PER_REQUEST * requests.len() as u64);
        self.check_fuel()?;
        let description = self.described("followed a link")?;
        let checked = || self.checked_requests(&description, requests, n_bytes);
        match Stage::Seen.charge(checked) {
            Ok((requests, n_bad_urls)) => {
                self.usage.requests += requests.len() as u64 + n_bad_urls;
                self.usage.request_bytes += n_bytes;
                self.output.requests.extend(requests);
                self.output.n_bad_urls += n_bad_urls;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(self.refuse(error)?)),
        }
    }

    async fn follow_field(
        &mut self,
        plan: u32,
        field: u32,
        rule: u32,
        options: FollowOptions,
    ) -> wasmtime::Result<Result<(), OutputError>> {
        self.follow_read(plan, field, None, rule, options).await
    }

    async fn follow_captures(
        &mut self,
        plan: u32,
        field: u32,
        captures: Vec<u32>,
        rule: u32,
        options: FollowOptions,
    ) -> wasmtime::Result<Result<(), OutputError>> {
        self.follow_read(plan, field, Some(captures), rule, options)
            .await
    }
}

impl CallState {
    /// Follows captures of a field: those at these positions, or all.
    async fn follow_read(
        &mut self,
        plan: u32,
        field: u32,
        chosen: Option<Vec<u32>>,
        rule: u32,
        options: FollowOptions,
    ) -> wasmtime::Result<Result<(), OutputError>> {
        let n_chosen = chosen.as_ref().map_or(0, Vec::len);
        let n_hinted = super::named_bytes(&options.hints);
        self.charge(n_chosen * size_of::<u32>() + options.state.len() + n_hinted)?;
        let reading = match self.read(plan).await? {
            Ok(reading) => reading,
            Err(error) => {
                let refused = OutputError::Refused(text_of(error));
                return Ok(Err(self.refuse(refused)?));
            }
        };
        let description = self.described("followed a link")?;
        let name = &description.plans[plan as usize].name;
        self.warn_if_cut(plan, name, &reading.captures);
        let n_values = reading.captures.n_values(field as usize);
        let n = chosen.as_ref().map_or(n_values.unwrap_or(0), Vec::len);
        if let Err(error) = self.check_room(n, n.saturating_mul(options.state.len() + n_hinted)) {
            return Ok(Err(self.refuse(error)?));
        }
        self.meter.charge(PER_REQUEST * n as u64);
        self.check_fuel()?;
        let checked = || self.checked_links(&description, &reading, field, chosen, rule, options);
        match Stage::Seen.charge(checked) {
            Ok(links) => {
                self.usage.requests += links.requests.len() as u64 + links.n_bad_urls;
                self.usage.request_bytes += links.n_bytes;
                match self.output.requests.is_empty() {
                    true => self.output.requests = links.requests,
                    false => self.output.requests.extend(links.requests),
                }
                self.output.n_bad_urls += links.n_bad_urls;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(self.refuse(error)?)),
        }
    }

    fn checked_links(
        &self,
        description: &Description,
        reading: &Reading,
        field: u32,
        chosen: Option<Vec<u32>>,
        rule: u32,
        options: FollowOptions,
    ) -> Result<Links, OutputError> {
        let captures = &reading.captures;
        let Some(n_values) = captures.n_values(field as usize) else {
            return Err(OutputError::Refused(format!(
                "field {field} does not exist; the plan has {}",
                captures.columns.len()
            )));
        };
        let value = |n: usize| captures.value(field as usize, n).ok_or(n);
        let urls: Result<Vec<&str>, usize> = match &chosen {
            None => (0..n_values).map(value).collect(),
            Some(chosen) => chosen.iter().map(|&n| value(n as usize)).collect(),
        };
        let urls = urls.map_err(|n| {
            let why = format!("capture {n} does not exist; the field has {n_values}");
            OutputError::Refused(why)
        })?;
        let n_each = options.state.len() + super::named_bytes(&options.hints);
        let n_bytes = urls.iter().map(|url| url.len() + n_each).sum();
        self.check_room(urls.len(), n_bytes)?;
        let like = Request {
            url: String::new(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
            rule,
            priority: options.priority,
            state: options.state,
            reload: options.reload,
            hints: options.hints,
        };
        let like = request::checked(like, reading.base.clone(), description)?;
        let found = urls
            .iter()
            .filter_map(|text| request::url(text, Some(&reading.base)).ok());
        // Growing it would copy the requests several times.
        let mut requests = Vec::with_capacity(urls.len());
        requests.extend(found.map(|url| crawler_model::crawl::Request {
            url,
            ..like.clone()
        }));
        Ok(Links {
            n_bad_urls: (urls.len() - requests.len()) as u64,
            requests,
            n_bytes,
        })
    }

    /// Checks that `n` more requests of `n_bytes` together may be followed.
    fn check_room(&self, n: usize, n_bytes: usize) -> Result<(), OutputError> {
        if self.usage.requests + n as u64 > self.limits.requests {
            return Err(over_budget(LimitName::Requests, self.limits.requests));
        }
        if self.usage.request_bytes + n_bytes > REQUEST_BYTES_MAX {
            return Err(OutputError::OverBudget(format!(
                "the requests of one call may hold {} MiB in all, with headers, bodies, states and hints; follow fewer, or with shorter states",
                REQUEST_BYTES_MAX >> 20
            )));
        }
        Ok(())
    }

    /// Returns the description with the names of rules and schemas; while describing there is none, and no
    /// output either.
    pub(super) fn described(&self, what: &str) -> Result<Arc<Description>, CallEnded> {
        self.description.clone().ok_or_else(|| {
            CallEnded::new(
                Kill::Denied,
                format_args!("the plugin {what} in describe, where there is no output"),
            )
        })
    }

    fn checked_item(
        &self,
        description: &Description,
        schema: u32,
        mut json: String,
    ) -> Result<Item, OutputError> {
        if self.output.items.len() as u64 >= self.limits.items {
            return Err(over_budget(LimitName::Items, self.limits.items));
        }
        if self.usage.item_bytes + json.len() as u64 > self.limits.item_bytes {
            return Err(over_budget(LimitName::ItemBytes, self.limits.item_bytes));
        }
        let Some(named) = description.schemas.get(schema as usize) else {
            return Err(OutputError::Refused(format!(
                "schema {schema} does not exist; the plugin describes {}",
                description.schemas.len()
            )));
        };
        if let Err(e) = check_object(&json) {
            return Err(OutputError::Refused(format!(
                "an item is one JSON object: {e}"
            )));
        }
        if let Some(Some(shape)) = self.schemas.get(schema as usize) {
            self.check_shape(shape, &json).map_err(|why| {
                let n = self.output.items.len() + 1;
                OutputError::Refused(format!("item {n}, of schema {}: {why}", named.name))
            })?;
        }
        // In valid JSON a raw line break can only be between tokens, so without it an item is always one line
        // of a line file.
        json.retain(|c| !matches!(c, '\n' | '\r'));
        Ok(Item {
            schema: named.name.clone(),
            json,
        })
    }

    /// Checks that an item has the shape of its schema. The fuel of the check is charged.
    fn check_shape(&self, shape: &JsonSchema, json: &str) -> Result<(), Unfit> {
        let left = self.limits.fuel.saturating_sub(self.meter.used());
        let most = left / PER_JSON_BYTE;
        let mut budget = most;
        let fits = shape.check(json, &mut budget);
        let used = match fits {
            Err(Unfit::OverBudget) => left + 1,
            _ => PER_JSON_BYTE * (most - budget),
        };
        self.meter.charge(used);
        fits
    }

    fn checked_requests(
        &self,
        description: &Description,
        requests: Vec<Request>,
        n_bytes: usize,
    ) -> Result<(Vec<crawler_model::crawl::Request>, u64), OutputError> {
        self.check_room(requests.len(), n_bytes)?;
        let base = match &self.kind {
            CallKind::Parse(page, _) => Some(&page.url),
            CallKind::Describe | CallKind::Root => None,
        };
        let mut checked = Vec::with_capacity(requests.len());
        let mut n_bad_urls = 0;
        for request in requests {
            match (request::url(&request.url, base), base) {
                (Ok(url), _) => checked.push(request::checked(request, url, description)?),
                // A page may hold any nonsense; the author of root wrote its URLs by hand.
                (Err(_), Some(_)) => n_bad_urls += 1,
                (Err(why), None) => {
                    return Err(OutputError::Refused(format!(
                        "url {:?} {why}",
                        up_to(&request.url, 200)
                    )));
                }
            }
        }
        Ok((checked, n_bad_urls))
    }

    /// Returns the reason of a refusal to the rule, or ends a rule that was refused too often.
    fn refuse(&mut self, error: OutputError) -> Result<OutputError, CallEnded> {
        self.usage.n_refused += 1;
        if self.usage.n_refused < REFUSED_MAX {
            return Ok(error);
        }
        let (OutputError::OverBudget(why)
        | OutputError::Refused(why)
        | OutputError::Other((_, why))) = error;
        Err(CallEnded::new(
            Kill::OverBudget,
            format_args!("{REFUSED_MAX} calls of output were refused; the last one because: {why}"),
        ))
    }
}

/// Checked links of one call of `follow-field`.
struct Links {
    requests: Vec<crawler_model::crawl::Request>,
    n_bad_urls: u64,
    n_bytes: usize,
}

fn text_of(error: ExtractError) -> String {
    match error {
        ExtractError::TooDeep(why)
        | ExtractError::TooLarge(why)
        | ExtractError::UnknownPlan(why)
        | ExtractError::Other((_, why)) => why,
    }
}

fn over_budget(limit: LimitName, value: u64) -> OutputError {
    OutputError::OverBudget(format!(
        "limit {limit} is {value} for one call; raise it with --limit {limit}=VALUE"
    ))
}
