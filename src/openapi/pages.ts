/** The URLs of the files that the page at /docs/api loads. */
export type Parts = { style: string; ownStyle: string; bundle: string; initializer: string; icon: string }

const head = (title: string) => `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
`

/** The page at /docs/api: the Swagger UI. */
export const docsPage = ({ style, ownStyle, bundle, initializer, icon }: Parts): string => `${head('kith: API')}\
<link rel="stylesheet" href="${style}">
<link rel="stylesheet" href="${ownStyle}">
<link rel="icon" type="image/png" href="${icon}">
</head>
<body>
<div id="swagger-ui"></div>
<noscript>This page needs JavaScript. The same document is at /openapi.json.</noscript>
<script src="${bundle}"></script>
<script src="${initializer}"></script>
</body>
</html>
`

/** The script that starts the Swagger UI with the document at `url`, and lists the operations of every group. */
export const docsInitializer = (url: string): string => `window.onload = () => SwaggerUIBundle({
  url: '${url}',
  dom_id: '#swagger-ui',
  deepLinking: true,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis],
})
`

/** The style that makes the Swagger UI, which is designed for wide windows, fit a phone. */
export const docsStyle = `*, *::before, *::after { box-sizing: border-box }
body { margin: 0; background: #fafafa }
.swagger-ui .wrapper { padding: 0 16px }
@media (max-width: 640px) {
  .swagger-ui .wrapper { padding: 0 8px }
  .swagger-ui .info { margin: 24px 0 16px; overflow-wrap: anywhere }
  .swagger-ui .scheme-container { margin: 0 0 8px; padding: 12px 0 }
  .swagger-ui .scheme-container .schemes { flex-wrap: wrap; gap: 8px }
  .swagger-ui .scheme-container .servers > label { margin: 0; max-width: 100% }
  .swagger-ui .scheme-container .servers > label select { width: 100%; max-width: 100% }
  .swagger-ui .opblock-tag { flex-wrap: wrap; padding: 8px 0 }
  .swagger-ui .opblock-tag small { flex: 1 1 100%; order: 1; padding: 4px 0 0 }
  .swagger-ui .opblock .opblock-summary { padding: 6px }
  .swagger-ui .opblock .opblock-summary-control { flex-wrap: wrap; min-width: 0 }
  .swagger-ui .opblock .opblock-summary-method { min-width: 64px; padding: 6px 4px; font-size: 12px }
  .swagger-ui .opblock .opblock-summary-path { flex: 1 1 100%; max-width: none; min-width: 0; padding: 0; font-size: 13px; overflow-wrap: anywhere }
  .swagger-ui .opblock .opblock-summary-path-description-wrapper { flex: 1 1 0; flex-wrap: wrap; gap: 2px 8px; min-width: 0; padding: 0 8px }
  .swagger-ui .opblock .opblock-summary-description { flex: 1 1 100%; font-size: 12px }
  .swagger-ui .opblock-section-header { flex-wrap: wrap; gap: 8px; padding: 8px }
  .swagger-ui .opblock-section-header > label { margin: 0 }
  .swagger-ui .table-container, .swagger-ui .responses-inner { padding: 8px }
  .swagger-ui .parameters, .swagger-ui .parameters tbody, .swagger-ui .parameters tr, .swagger-ui .parameters td { display: block; width: 100% }
  .swagger-ui .parameters thead { display: none }
  .swagger-ui .parameters-col_name { padding: 8px 0 0 }
  .swagger-ui .parameters-col_description { padding: 4px 0 8px }
  .swagger-ui .parameters-col_description input, .swagger-ui .parameters-col_description select { max-width: none; width: 100% }
  .swagger-ui .responses-table { table-layout: fixed; width: 100% }
  .swagger-ui .response-col_status { width: 52px }
  .swagger-ui .response-col_description { overflow-wrap: anywhere }
  .swagger-ui .response-col_links, .swagger-ui .responses-table .col_header.response-col_links { display: none }
  .swagger-ui .highlight-code, .swagger-ui .model-box, .swagger-ui .model-box-control { max-width: 100%; overflow-x: auto }
  .swagger-ui .response-control-media-type__accept-message { overflow-wrap: anywhere }
  .swagger-ui .dialog-ux .modal-ux { min-width: 0; width: calc(100vw - 16px); max-width: calc(100vw - 16px) }
  .swagger-ui .auth-container .wrapper { padding: 0 }
  .swagger-ui .auth-container input[type=text], .swagger-ui .auth-container input[type=password] { min-width: 0; width: 100% }
}
`

/** The page at /, for people who open the URL of the service in a browser. */
export const homePage = `${head('kith')}\
<style>
body { margin: 0 auto; max-width: 36rem; padding: 2rem 1rem; font: 1rem/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fafafa }
h1 { font-size: 1.5rem; margin: 0 0 .5rem }
li { margin: .5rem 0 }
a { color: #0b57a4 }
</style>
</head>
<body>
<h1>kith</h1>
<p>A self-hosted contact and record data service. It is running.</p>
<ul>
<li><a href="/console">The console</a>: people, records, consents and operations, for people who do not write code</li>
<li><a href="/docs">The documentation</a>: from the first steps to the operation of the service</li>
<li><a href="/docs/api">The API</a>: every endpoint, to read and to try out</li>
<li><a href="/openapi.json">The OpenAPI document</a>: the same for programs</li>
<li><a href="/asyncapi.json">The AsyncAPI document</a>: webhooks and streams, for programs</li>
</ul>
</body>
</html>
`
