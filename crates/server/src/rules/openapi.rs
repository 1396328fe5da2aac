//! The OpenAPI document of the calls that set and lift rules, which are the same for every kind of target.

use pointsman_core::RuleKind;
use utoipa::ToSchema;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Type};
use utoipa::openapi::{Content, OpenApi, OpenApiBuilder, Paths, Ref, Required, ResponseBuilder};

use super::RuleTarget;

/// The texts of the OpenAPI document that differ between the kinds of targets.
pub(crate) struct RuleCallOpenApiTexts {
    /// The tag, and the first segment of the URL after `/api/v1`.
    pub(crate) tag: &'static str,
    /// What the target is called in texts and operation ids.
    pub(crate) noun: &'static str,
    /// The name and the description of the path parameter.
    pub(crate) parameter: (&'static str, &'static str),
    /// The effect of a pause, as a sentence.
    pub(crate) pause_effect: &'static str,
    /// The effect of lifting a pause, as a sentence after a blank; may be empty.
    pub(crate) unpause_effect: &'static str,
}

impl RuleCallOpenApiTexts {
    pub(super) fn url_path(&self, kind: RuleKind) -> String {
        format!("/api/v1/{}/{{{}}}/{}", self.tag, self.parameter.0, kind.as_str())
    }
}

/// The document of the four calls of a kind of target.
pub(crate) fn build_document<T: RuleTarget>() -> OpenApi {
    let RuleCallOpenApiTexts { noun, pause_effect, unpause_effect, .. } = T::OPENAPI_TEXTS;
    let mut paths = Paths::new();
    for (kind, set_summary, lift_summary) in [
        (
            RuleKind::Pause,
            format!("Pauses a {noun}. {pause_effect}"),
            format!("Lifts a pause.{unpause_effect}"),
        ),
        (
            RuleKind::Block,
            format!("Blocks a {noun}: like a pause, but only an admin can lift it."),
            "Lifts a block.".into(),
        ),
    ] {
        let set = build_operation::<T>(&format!("{}_{noun}", kind.as_str()), set_summary);
        let lift = build_operation::<T>(&format!("un{}_{noun}", kind.as_str()), lift_summary);
        let mut item = PathItem::new(HttpMethod::Put, set);
        item.delete = Some(lift.build());
        paths.paths.insert(T::OPENAPI_TEXTS.url_path(kind), item);
    }
    OpenApiBuilder::new().paths(paths).build()
}

fn build_operation<T: RuleTarget>(operation_id: &str, summary: String) -> OperationBuilder {
    let RuleCallOpenApiTexts { tag, noun, parameter: (name, description), .. } = T::OPENAPI_TEXTS;
    let parameter = ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)));
    let optional_request = OneOfBuilder::new()
        .item(Ref::from_schema_name(pointsman_api::RuleRequestBody::name()))
        .item(ObjectBuilder::new().schema_type(Type::Null));
    let request_body =
        RequestBodyBuilder::new().content("application/json", Content::new(Some(optional_request)));
    let response = ResponseBuilder::new()
        .description(format!("The {noun} after the change"))
        .content("application/json", Content::new(Some(Ref::from_schema_name(T::Detail::name()))));
    OperationBuilder::new()
        .tag(tag)
        .operation_id(Some(operation_id))
        .summary(Some(summary))
        .parameter(parameter)
        .request_body(Some(request_body.build()))
        .response("200", response)
}
