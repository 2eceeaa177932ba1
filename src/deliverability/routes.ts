import { listSchema } from '../organizations/definition-schema.ts'
import { peopleStackId } from '../organizations/definitions.ts'
import type { Call } from '../route/call.ts'
import type { HookRoute } from '../route/page.ts'
import { personAddresses } from '../route/person-addresses.ts'
import { dataOf, type OpenRoute, type Route, route } from '../route/route.ts'
import { isChannel } from '../values/channels.ts'
import { refuse } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import { addressFields } from '../values/profile-fields.ts'
import { listEvents, listSuppressed, readPersonDeliverability } from './deliverability.ts'
import { checkEvents, liftSuppression, recordEvents } from './record-events.ts'
import {
  type DeliveryEventsBody,
  deliveryEvents,
  type EventsQuery,
  eventPage,
  eventStatuses,
  eventsQuery,
  newSource,
  personDeliverability,
  received,
  type SourceBody,
  type SuppressionsQuery,
  source,
  suppressionPage,
  suppressionsQuery,
} from './schema.ts'
import { createSource, deleteSource, incomingPath, listSources, receiveEvents } from './sources.ts'

const path = '/v1/deliverability'
const sourcesPath = `${path}/sources`
const tag = 'Deliverability'

const recordCallOf = ({ caller, request_id, limits, signal, written, shown }: Call<unknown>) => ({
  actor: caller.subject,
  ...{ request_id, limits, signal, written, shown },
})

/**
 * Responds with addresses. The access log counts them as people but lists no person, because an address may have
 * several people, or no person any more.
 */
const addressesOf = <Body>(read: (call: Call<Body>) => Promise<{ items: readonly object[] }>) =>
  dataOf(async (call: Call<Body>) => {
    const page = await read(call)
    for (const _ of page.items) call.shown.addUnlisted(peopleStackId)
    return page
  })

/** The maximum size of a provider's request. SendGrid sends up to 768 KiB. */
const hookBytes = 1_048_576

/** The endpoints to which providers send their events. */
export const deliverabilityHooks = (): HookRoute[] => [
  { path: `${incomingPath}/{key}`, bodyBytes: hookBytes, handle: receiveEvents },
]

export const incomingRow: OpenRoute = {
  method: 'POST',
  path: `${incomingPath}/{key}`,
  params: { key: 'key' },
  operationId: 'receiveDeliveryEvents',
  summary: 'Receive the events of a mail provider',
  description:
    'The path of a source. It needs no token: the request has the signature of the provider. One that is unsigned, too old or repeated is refused with 401, ' +
    'and nothing of it is stored.',
  tag,
  request: { contentType: 'application/json', body: Type.Unknown({ examples: [{ RecordType: 'Delivery' }] }) },
  answer: received,
  enveloped: true,
  refusals: { 400: 'invalid_json', 401: 'unauthorized', 413: 'invalid_parameter', 503: 'operation_failed' },
}

/** The route table of addresses' events and suppressions, and of their sources. */
export function deliverabilityRoutes(): Route[] {
  return [
    route<DeliveryEventsBody>({
      method: 'POST',
      tag,
      path,
      scope: 'people:write',
      operationId: 'recordDeliveryEvents',
      summary: 'Record bounces, complaints, deliveries and unsubscriptions',
      description:
        'Up to 1,000 events of addresses, in any order. A hard bounce suppresses its address for 180 days (the setting `suppression_days`), so do three soft ' +
        'bounces within thirty days without a delivery between them, and a complaint until somebody lifts it.',
      body: deliveryEvents,
      answer: eventStatuses,
      handle: dataOf(async call => {
        checkEvents(call.body.events)
        const statuses = await recordEvents(call.context, recordCallOf(call), call.body.events)
        return { items: statuses.map(status => ({ status })) }
      }),
    }),
    route<SuppressionsQuery>({
      method: 'GET',
      tag,
      path,
      scope: 'people:read',
      operationId: 'listSuppressedAddresses',
      summary: 'List the suppressed addresses',
      description: 'The latest suppression comes first.',
      query: suppressionsQuery,
      hasDefaults: true,
      answer: suppressionPage,
      handle: addressesOf(({ context, body, signal }) => listSuppressed(context, body, signal)),
    }),
    route<EventsQuery>({
      method: 'GET',
      tag,
      path: `${path}/events`,
      scope: 'people:read',
      operationId: 'exportDeliveryEvents',
      summary: 'Export the events of all addresses',
      description:
        'The events that count, as another kith records them to decide in the same way. Refusals of addresses that no person has any more are ' +
        'events `unsubscribe`. Addresses of erased people are not among them: kith has their hashes alone.',
      query: eventsQuery,
      hasDefaults: true,
      answer: eventPage,
      securityEvent: 'export',
      handle: addressesOf(({ context, body, signal }) => listEvents(context, body, signal)),
    }),
    route({
      method: 'DELETE',
      tag,
      path: `${path}/{channel}/{address}`,
      params: { channel: 'channel', address: 'external_id' },
      scope: 'people:write',
      operationId: 'liftSuppression',
      summary: 'Lift the suppression of an address',
      description: 'The events until now no longer count. The consent answers of a complaint stay.',
      answer: Type.Literal(true),
      handle: dataOf(async call => {
        const { channel, address } = call.params as { channel: string; address: string }
        const isLifted =
          isChannel(channel) && (await liftSuppression(call.context, recordCallOf(call), channel, address))
        if (!isLifted) refuse('not_found', 'There is no such suppressed address.')
        return true
      }),
    }),
    route<SourceBody>({
      method: 'POST',
      tag,
      path: sourcesPath,
      scope: 'webhooks:write',
      operationId: 'createDeliverabilitySource',
      summary: 'Let a mail provider send its events',
      description: 'The response has the path to give to the provider. kith checks the signature of each request.',
      body: newSource,
      answer: source,
      successes: { 201: 'Created.' },
      refusals: { 409: 'duplicate_entry' },
      handle: async call => {
        const data = await createSource(call.context, recordCallOf(call), call.body)
        return { status: 201, data, headers: { Location: `${sourcesPath}/${data.key}` } }
      },
    }),
    route({
      method: 'GET',
      tag,
      path: sourcesPath,
      scope: 'webhooks:read',
      operationId: 'listDeliverabilitySources',
      summary: 'List the mail providers that send events',
      answer: listSchema(source),
      handle: dataOf(async ({ context, signal }) => ({ items: await listSources(context, signal) })),
    }),
    route({
      method: 'DELETE',
      tag,
      path: `${sourcesPath}/{key}`,
      params: { key: 'key' },
      scope: 'webhooks:write',
      operationId: 'deleteDeliverabilitySource',
      summary: 'Take no more events of a mail provider',
      description: 'What it told stays.',
      answer: Type.Literal(true),
      handle: dataOf(call => deleteSource(call.context, recordCallOf(call), call.params.key!)),
    }),
    ...personAddresses.map(({ path, params, suffix, by }) =>
      route({
        method: 'GET',
        tag: 'People',
        path: `${path}/deliverability`,
        params,
        scope: 'people:read',
        fields: addressFields,
        operationId: `getPersonDeliverability${suffix}`,
        summary: `Tell whether messages reach a person${by}`,
        description: 'For the address that the person has now on each channel.',
        answer: personDeliverability,
        handle: dataOf(readPersonDeliverability),
      }),
    ),
  ]
}
