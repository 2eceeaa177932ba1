import type { Config } from '../../process/config.ts'
import type { Call } from '../../route/call.ts'
import { personAddresses } from '../../route/person-addresses.ts'
import { type Route, route } from '../../route/route.ts'
import { answerErasure, answerErasures } from './answer-erasure.ts'
import { type EraseBody, type ErasuresQuery, eraseBody, erased, erasurePage, erasuresQuery } from './erasure-schema.ts'

/** The route table of erasures. */
export function erasureRoutes({ ledgerOrigin }: Pick<Config, 'ledgerOrigin'>): Route[] {
  const erasing = personAddresses.map(
    ({ path, params, suffix, by }): Route => ({
      method: 'POST',
      path: `${path}/erase`,
      params,
      scope: 'people:erase',
      tag: 'People',
      operationId: `erasePerson${suffix}`,
      summary: `Erase a person${by}`,
      description:
        'Takes everything that kith holds about the person, and about everybody who was merged into it: also the values in the change ' +
        'log and in the log of others. It cannot be undone. A deleted person can be erased too. Asked again, the response is the same. ' +
        'See docs/rights.md.',
      versioned: 'request',
      body: eraseBody,
      answer: erased,
      refusals: { 409: 'invalid_parameter' },
      repeats: 'safe',
      successes: {
        200: 'Erased.',
        202: 'Erased for every reader. The log is long, and the rest of it is being erased: repeat the request.',
      },
      securityEvent: 'erasure',
      handle: call => answerErasure(ledgerOrigin, call as Call<EraseBody>),
    }),
  )
  return [
    ...erasing,
    route<ErasuresQuery>({
      method: 'GET',
      path: '/v1/erasures',
      scope: 'people:erase',
      tag: 'People',
      operationId: 'listErasures',
      summary: 'List erasures with their certificates, newest first',
      query: erasuresQuery,
      answer: erasurePage,
      handle: answerErasures,
    }),
  ]
}
