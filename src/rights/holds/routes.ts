import { definitionWrite } from '../../organizations/change-definitions.ts'
import { personAddresses } from '../../route/person-addresses.ts'
import { type Route, route } from '../../route/route.ts'
import { Type } from '../../values/json-schema.ts'
import { answerHolds, holdPerson, releasePerson } from './holds.ts'
import { type HoldBody, type HoldsQuery, hold, holdBody, holdPage, holdsQuery } from './schema.ts'

/** The route table of legal holds. */
export function holdRoutes(): Route[] {
  const ofPeople = personAddresses.flatMap(({ path, params, suffix, by }): Route[] => {
    const row = { path: `${path}/hold`, params, scope: 'people:erase', tag: 'Lifetimes' } as const
    return [
      definitionWrite<HoldBody>({
        ...row,
        method: 'POST',
        operationId: `holdPerson${suffix}`,
        summary: `Hold a person${by}`,
        description:
          'A held person is not erased or deleted by a retention rule, and by hand only with `override_hold`. The hold survives a deletion ' +
          'and merges. Asked again, the reason and the end are replaced.',
        body: holdBody,
        answer: hold,
        repeats: 'safe',
        handle: holdPerson,
      }),
      definitionWrite({
        ...row,
        method: 'DELETE',
        operationId: `releasePerson${suffix}`,
        summary: `End the hold of a person${by}`,
        answer: Type.Literal(true),
        handle: releasePerson,
      }),
    ]
  })
  return [
    ...ofPeople,
    route<HoldsQuery>({
      method: 'GET',
      path: '/v1/holds',
      scope: 'people:erase',
      tag: 'Lifetimes',
      operationId: 'listHolds',
      summary: 'List the holds that are in force',
      query: holdsQuery,
      hasDefaults: true,
      answer: holdPage,
      handle: answerHolds,
    }),
  ]
}
