import type { TSchema } from 'typebox'
import type { ParameterKind, Route } from '../route/route.ts'
import { bearerScheme, descriptionOf } from './operation.ts'
import { createShapes, type JsonSchema, pascalCase, type Shapes } from './shapes.ts'

const linesType = 'application/x-ndjson'
const eventsType = 'text/event-stream'

/** The requests that kith sends on its own initiative. */
export type Messages = {
  headers: TSchema
  types: readonly { type: string; description: string; payload: TSchema }[]
}

/** The input of a document: the description of the service, its routes, and the messages of webhooks. */
export type AsyncContract = {
  info: { title: string; version: string; description: string }
  rows: readonly Route[]
  webhooks: Messages
}

/**
 * Builds the AsyncAPI 3.0 document of everything that the service sends piece by piece: the requests of webhooks, and
 * the responses of JSON lines or server-sent events. Throws an Error if two different schemas have the same title.
 */
export function asyncDocumentOf({ info, rows, webhooks }: AsyncContract): JsonSchema {
  const shapes = createShapes()
  const channels: Record<string, JsonSchema> = { webhooks: webhookChannel(webhooks, shapes) }
  const operations: Record<string, JsonSchema> = { sendWebhook: webhookOperation }
  for (const row of rows)
    for (const [type, message] of streamsOf(row)) {
      const name = `${row.operationId}${type === eventsType ? 'Events' : 'Lines'}`
      channels[name] = channelOf(row, { name, type, message }, shapes)
      operations[name] = operationOf(row, name, shapes)
    }
  return {
    asyncapi: '3.0.0',
    info,
    defaultContentType: 'application/json',
    servers,
    channels,
    operations,
    components: { securitySchemes, schemas: shapes.schemas },
  }
}

const securitySchemes = {
  bearer: bearerScheme,
  signature: {
    type: 'httpApiKey',
    in: 'header',
    name: 'webhook-signature',
    description: 'The signature of Standard Webhooks 1.0 by the secret of the webhook. The receiver verifies it.',
  },
}

const hostOf = (host: string, description: string) => ({
  host: `{${host}}`,
  protocol: 'https',
  description,
  variables: { [host]: { description: 'A host, with its port if it is not 443.', default: `${host}.example` } },
})

const servers = { service: hostOf('kith', 'The service.'), receiver: hostOf('receiver', 'The receiver of a webhook.') }

const httpBinding = (method: string) => ({ method, bindingVersion: '0.3.0' })

/** The streams of a row by their media types, with the schema of a message. The data of an event equal a line. */
function streamsOf({ streams, answer, mediaTypes = {} }: Route): [type: string, message: TSchema][] {
  const line = streams ? answer : mediaTypes[linesType]
  if (!line) return []
  return eventsType in mediaTypes
    ? [
        [linesType, line],
        [eventsType, line],
      ]
    : [[linesType, line]]
}

type Stream = { name: string; type: string; message: TSchema }

function channelOf({ path, params, summary }: Route, { name, type, message }: Stream, shapes: Shapes): JsonSchema {
  const isEvents = type === eventsType
  return {
    address: path,
    title: summary,
    description: isEvents
      ? `Server-sent events: send \`Accept: ${eventsType}\`. The \`id\` of an event is the number of the change, and \`event\` its subject and what happened to it.`
      : `Lines of JSON: send \`Accept: ${linesType}\`. They are compressed if \`Accept-Encoding\` has zstd or gzip.`,
    servers: [{ $ref: '#/servers/service' }],
    ...(params && { parameters: parametersOf(params) }),
    messages: { [isEvents ? 'event' : 'line']: { payload: shapes.write(message, pascalCase(name)) } },
  }
}

const parametersOf = (params: Record<string, ParameterKind>): JsonSchema =>
  Object.fromEntries(Object.keys(params).map(name => [name, { description: `The \`${name}\` of the path.` }]))

function operationOf(row: Route, name: string, shapes: Shapes) {
  const { method, summary, query, operationId } = row
  return {
    action: 'send',
    channel: { $ref: `#/channels/${name}` },
    security: [{ $ref: '#/components/securitySchemes/bearer' }],
    summary,
    description: descriptionOf(row),
    bindings: {
      http: { ...httpBinding(method), ...(query && { query: shapes.write(query, `${pascalCase(operationId)}Query`) }) },
    },
  }
}

const webhookChannel = ({ headers, types }: Messages, shapes: Shapes): JsonSchema => ({
  title: 'Webhooks',
  description: 'The `url` of a webhook, which POST /v1/webhooks creates.',
  servers: [{ $ref: '#/servers/receiver' }],
  messages: Object.fromEntries(
    types.map(({ type, description, payload }) => [
      type,
      {
        name: type,
        summary: description,
        headers: shapes.write(headers, 'WebhookHeaders'),
        payload: shapes.write(payload, `${pascalCase(type.replace('.', '_'))}Event`),
      },
    ]),
  ),
})

const webhookOperation = {
  action: 'send',
  channel: { $ref: '#/channels/webhooks' },
  security: [{ $ref: '#/components/securitySchemes/signature' }],
  summary: 'Send a change to the URL of a webhook',
  description:
    'Each request is signed by Standard Webhooks 1.0. It is repeated until the response has a status from 200 to 299, in the order of the ' +
    'changes of one person or record.',
  bindings: { http: httpBinding('POST') },
}
