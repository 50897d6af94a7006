//! `GET /api/openapi.json`: what there is on this port, made from the table of routes.

use axum::{
    extract::State,
    response::{IntoResponse, Response},
};
use serde_json::{Map, Value, json};

use super::{
    Site,
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
    json!({
        "openapi": "3.1.0",
        "info": {"title": title, "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": error_schema()},
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
            "200": {"description": "It was done."},
            "default": {
                "description": "Why not.",
                "content": {"application/json": {
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
