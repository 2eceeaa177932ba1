import type { Call } from '../route/call.ts'
import { personAddresses, personOf } from '../route/person-addresses.ts'
import { type Route, route } from '../route/route.ts'
import { isChannel } from '../values/channels.ts'
import { refuse } from '../values/errors.ts'
import { Type } from '../values/json-schema.ts'
import { listSuppressed, readPersonDeliverability } from './deliverability.ts'
import { checkEvents, liftSuppression, recordEvents } from './record-events.ts'
import {
  type DeliveryEventsBody,
  deliveryEvents,
  eventStatuses,
  personDeliverability,
  type SuppressionsQuery,
  suppressionPage,
  suppressionsQuery,
} from './schema.ts'

const path = '/v1/deliverability'
const tag = 'Deliverability'

const recordCallOf = ({ caller, request_id, limits, signal, written }: Call) => ({
  actor: caller.subject,
  ...{ request_id, limits, signal, written },
})

/** The route table of what mail providers tell of addresses. */
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
      handle: async call => {
        checkEvents(call.body.events)
        const statuses = await recordEvents(call.context, recordCallOf(call as Call), call.body.events)
        return { status: 200, data: { items: statuses.map(status => ({ status })) } }
      },
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
      handle: async ({ context, body, signal }) => ({ status: 200, data: await listSuppressed(context, body, signal) }),
    }),
    route({
      method: 'DELETE',
      tag,
      path: `${path}/{channel}/{address}`,
      params: { channel: 'key', address: 'external_id' },
      scope: 'people:write',
      operationId: 'liftSuppression',
      summary: 'Lift the suppression of an address',
      description: 'The events until now no longer count. The consent answers of a complaint stay.',
      answer: Type.Literal(true),
      handle: async call => {
        const { channel, address } = call.params as { channel: string; address: string }
        const isLifted =
          isChannel(channel) && (await liftSuppression(call.context, recordCallOf(call), channel, address))
        if (!isLifted) refuse('not_found', 'There is no such suppressed address.')
        return { status: 200, data: true }
      },
    }),
    ...personAddresses.map(({ path, params, suffix, by }) =>
      route({
        method: 'GET',
        tag: 'People',
        path: `${path}/deliverability`,
        params,
        scope: 'people:read',
        operationId: `getPersonDeliverability${suffix}`,
        summary: `Tell whether messages reach a person${by}`,
        description: 'For the address that the person has now on each channel.',
        answer: personDeliverability,
        handle: async ({ context, params, signal }) => ({
          status: 200,
          data: await readPersonDeliverability(context, personOf(params), signal),
        }),
      }),
    ),
  ]
}
