//! `GET /api/openapi.json`: what there is on this port, made from the table of routes.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{
    Site, schemas,
    table::{self, Field, Route},
};
use crate::access::Audience;

/// The document of a port.
fn document(audience: &Audience, routes: &[Route]) -> Value {
    let title = match audience {
        Audience::Operator => "hyperhive dashboard".to_owned(),
        Audience::Agent(name) => format!("hyperhive agent {name}"),
    };
    let mut paths: Map<String, Value> = Map::new();
    for route in routes {
        let item = paths
            .entry(route.path.as_str())
            .or_insert_with(|| json!({}));
        item[route.method.to_lowercase()] = operation(route);
    }
    let mut schemas = schemas::components();
    schemas.insert("Error".to_owned(), error_schema());
    json!({
        "openapi": "3.1.0",
        "info": {"title": title, "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

/// Made when it is asked for: a hive has many ports, and this is rarely looked at.
pub(super) async fn show(State(site): State<Site>) -> Response {
    let routes = table::routes(&site.audience);
    axum::Json(document(&site.audience, &routes)).into_response()
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "summary": route.summary,
        "responses": {
            "200": done(route.answer),
            "default": {
                "description": "Why not.",
                "content": {"application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Error"},
                }},
            },
        },
    });
    if route.guarded {
        operation["security"] = json!([{"token": []}]);
    }
    let mut parameters = path_parameters(&route.path);
    if route.method == "POST" {
        operation["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": body_schema(route.fields)}},
        });
    } else {
        parameters.extend(route.fields.iter().map(query_parameter));
    }
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

/// What a good answer holds.
fn done(shape: Option<&str>) -> Value {
    match shape {
        None => json!({"description": "It was done."}),
        Some(name) => {
            let schema = json!({"$ref": format!("#/components/schemas/{name}")});
            json!({
                "description": "It was done.",
                "content": {"application/json": {"schema": schema}},
            })
        }
    }
}

fn path_parameters(path: &str) -> Vec<Value> {
    let names = path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let parameter =
        |name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}});
    names.map(parameter).collect()
}

fn query_parameter(field: &Field) -> Value {
    json!({
        "name": field.name, "in": "query", "required": field.required,
        "schema": {"type": field.kind},
    })
}

fn body_schema(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields
        .iter()
        .map(|field| (field.name.to_owned(), json!({"type": field.kind})))
        .collect();
    let required = fields.iter().filter(|field| field.required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    json!({"type": "object", "properties": properties, "required": required})
}

fn error_schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "ok": {"const": false},
            "error": {
                "type": "object",
                "properties": {"code": text, "message": text, "hint": text},
                "required": ["code", "message"],
            },
        },
        "required": ["ok", "error"],
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The page's types are made from this file: `HIVE_BLESS=1` writes it anew, and
    /// `npm run types` in `web/` the types.
    #[test]
    fn the_document_in_the_repository_is_this_one() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let routes = table::routes(&Audience::Operator);
        let document = document(&Audience::Operator, &routes);
        let text = format!("{}\n", serde_json::to_string_pretty(&document).unwrap());
        if std::env::var_os("HIVE_BLESS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            kept == text,
            "docs/openapi.json is out of date: run this test with HIVE_BLESS=1, then `npm run \
             types` in web/"
        );
    }
}
