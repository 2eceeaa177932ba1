import type { TSchema } from 'typebox'
import type { EntityKind } from '../entities/entity-kind.ts'
import { pageSchema } from '../entities/schema.ts'
import type { Config } from '../process/config.ts'
import type { Call } from '../route/call.ts'
import { personAddresses } from '../route/person-addresses.ts'
import type { Route } from '../route/route.ts'
import { Type } from '../values/json-schema.ts'
import { answerDuplicates, answerDuplicatesOf } from './duplicates.ts'
import {
  type DuplicatesBody,
  type DuplicatesOfQuery,
  duplicatesBody,
  duplicatesOf,
  duplicatesOfQuery,
  duplicatesPage,
} from './duplicates-schema.ts'
import { runIdentityWrite } from './identity-write.ts'
import { type LookupBody, lookUpPeople, lookupBody } from './lookup.ts'
import { mergePeople } from './merge-people.ts'
import { type MergeBody, mergeAnswer, mergeBody, mergeIdentifiers, unmergeAnswer, unmergeBody } from './merge-schema.ts'
import { listSetAsides, setPeopleAside, takeBackSetAside } from './set-aside.ts'
import {
  type SetAsideBody,
  type SetAsidesQuery,
  setAside,
  setAsideBody,
  setAsidePage,
  setAsidesQuery,
} from './set-aside-schema.ts'
import { unmergePeople } from './unmerge-people.ts'

/** The endpoint that finds people by email, phone or external identifier. `person` is the schema of a read. */
export function lookupEndpoints({ limits }: Pick<Config, 'limits'>, person: EntityKind['answer']): Route[] {
  return [
    {
      method: 'POST',
      path: '/v1/people/lookup',
      scope: 'people:read',
      fields: 'shown',
      operationId: 'lookUpPeople',
      summary: 'Find people by email, phone or external identifier',
      tag: 'People',
      description:
        'The body has one of `email`, `mobile_number` with `mobile_prefix`, and `external_id`. Returns the people who have it, at most ' +
        '100 in order of their identifiers, or none.',
      body: lookupBody(limits),
      answer: pageSchema(person),
      handle: call => lookUpPeople(call as Call<LookupBody>),
    },
  ]
}

/** The endpoints that merge two people and undo a merge. `person` is the schema of a read. */
export function mergeEndpoints({ limits }: Pick<Config, 'limits'>, person: TSchema): Route[] {
  const shared = {
    method: 'POST',
    scope: 'people:write',
    tag: 'People',
    versioned: true,
    reveals: { scope: 'people:read', identifiers: ['dry_run', 'merge_id', 'completed', 'merged'] },
    successes: { 200: 'Done.', 202: 'Done. Very many links of others follow in the background, within seconds.' },
  } as const
  return personAddresses.flatMap(({ path, params, suffix, by }): Route[] => [
    {
      ...shared,
      path: `${path}/merge`,
      params,
      body: mergeBody(limits),
      operationId: `mergePeople${suffix}`,
      summary: `Merge another person into a person${by}`,
      description:
        'The person in the path survives: its unset fields and attribute values are filled from the other, whose links move to it. ' +
        '`keep` chooses values one by one where both have one. ' +
        'Of two consent answers to the same purpose on the same channel, the one that was collected later counts, at equal times the ' +
        'refusal. The identifiers of the other then lead to the survivor. `unmerge` undoes it.',
      answer: Type.Union([mergeAnswer(person), mergeIdentifiers('MergeIdentifiers')]),
      securityEvent: 'merge',
      handle: call => runIdentityWrite(call as Call<MergeBody>, mergePeople),
    },
    {
      ...shared,
      path: `${path}/unmerge`,
      params,
      body: unmergeBody(limits),
      operationId: `unmergePeople${suffix}`,
      summary: `Undo a merge into a person${by}`,
      description:
        'The other person returns under its identifiers, with its values, answers and links. What was written to the survivor since ' +
        'the merge stays with the survivor. 409 if the survivor was itself merged or one of the two was erased.',
      answer: Type.Union([unmergeAnswer(person), mergeIdentifiers('UnmergeIdentifiers')]),
      refusals: { 409: 'duplicate_entry' },
      securityEvent: 'unmerge',
      handle: call => runIdentityWrite(call as Call<MergeBody>, unmergePeople),
    },
  ])
}

/** The endpoints of the search for duplicates and of set-asides. */
export function duplicatesEndpoints({ limits }: Pick<Config, 'limits'>): Route[] {
  const search: Route = {
    method: 'POST',
    path: '/v1/people/duplicates',
    scope: 'people:read',
    tag: 'People',
    prefersReader: true,
    operationId: 'findDuplicates',
    summary: 'Find people who may be one',
    description:
      'Returns groups of people who share an email, a phone number, or name and date of birth, with a score and the reasons. Groups by ' +
      'email come first, then by phone number, then by name. A group whose people all share an earlier key is not repeated. ' +
      'A person who is set aside from all others of a group is left out. ' +
      'A page that takes longer than half a second ends early, with `has_more`.',
    body: duplicatesBody,
    answer: duplicatesPage,
    hasDefaults: true,
    handle: call => answerDuplicates(call as Call<DuplicatesBody>),
  }
  const ofPeople = personAddresses.map(
    ({ path, params, suffix, by }): Route => ({
      method: 'GET',
      path: `${path}/duplicates`,
      params,
      scope: 'people:read',
      tag: 'People',
      prefersReader: true,
      operationId: `findDuplicatesOf${suffix}`,
      summary: `Find people who may be the same as a person${by}`,
      description:
        'Returns the people who share an email, a phone number, or name and date of birth with the person, the likeliest first. Those ' +
        'who are set aside from it are left out.',
      query: duplicatesOfQuery,
      hasDefaults: true,
      answer: duplicatesOf,
      handle: call => answerDuplicatesOf(call as Call<DuplicatesOfQuery>),
    }),
  )
  const setAsides: Route[] = [
    {
      method: 'POST',
      path: '/v1/people/duplicates/set-aside',
      scope: 'people:write',
      tag: 'People',
      operationId: 'setPeopleAside',
      summary: 'Set people aside who look like one and are not',
      description:
        'No two of these people are the same. The search for duplicates leaves their pairs out until the set-aside is taken back. A merge ' +
        'leads to the survivor, and its undoing back. Asked again for the same people, the response is the same.',
      body: setAsideBody(limits),
      answer: setAside,
      refusals: { 404: 'not_found' },
      repeats: 'safe',
      handle: call => setPeopleAside(call as Call<SetAsideBody>),
    },
    {
      method: 'GET',
      path: '/v1/people/duplicates/set-aside',
      scope: 'people:read',
      tag: 'People',
      operationId: 'listSetAsides',
      summary: 'List who was set aside',
      query: setAsidesQuery,
      hasDefaults: true,
      answer: setAsidePage,
      handle: call => listSetAsides(call as Call<SetAsidesQuery>),
    },
    {
      method: 'DELETE',
      path: '/v1/people/duplicates/set-aside/{uuid}',
      params: { uuid: 'uuid' },
      scope: 'people:write',
      tag: 'People',
      operationId: 'takeBackSetAside',
      summary: 'Take a set-aside back',
      answer: Type.Literal(true),
      handle: takeBackSetAside,
    },
  ]
  return [search, ...ofPeople, ...setAsides]
}
