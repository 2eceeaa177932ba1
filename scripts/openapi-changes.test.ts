import { expect, it } from 'vitest'
import { openApiDocument } from '../src/process/app.ts'
import { loadConfig } from '../src/process/config.ts'
import { findBreakingChanges } from './openapi-changes.ts'

// biome-ignore lint/suspicious/noExplicitAny: a test changes any part of the document
type AnyDocument = any

const text = JSON.stringify(openApiDocument({ config: loadConfig({}) }))
const parsed = (): AnyDocument => JSON.parse(text)

/** The changes between the document of the service and a copy that `change` has changed. */
function changesAfter(change: (document: AnyDocument) => void): string[] {
  const document = parsed()
  change(document)
  return findBreakingChanges(parsed(), document)
}

it('finds nothing between a document and itself', () => {
  expect(findBreakingChanges(parsed(), parsed())).toEqual([])
})

it.each<[string, (document: AnyDocument) => void]>([
  ['a new operation', ({ paths }) => (paths['/v1/new'] = { get: paths['/v1/people'].get })],
  [
    'a new member of a response',
    ({ components }) => (components.schemas.Person.properties.nickname = { type: 'string' }),
  ],
  ['a new optional member of a body', d => (d.components.schemas.PersonBody.properties.nickname = { type: 'string' })],
  ['a longer text in a body', d => (d.components.schemas.PersonBody.properties.first_name.maxLength += 1)],
  ['another description', d => (d.paths['/v1/people'].post.summary = 'Make a person')],
  ['a deprecation', d => (d.paths['/v1/people'].post.deprecated = true)],
])('accepts %s', (_, change) => {
  expect(changesAfter(change)).toEqual([])
})

it.each<[string, (document: AnyDocument) => void, string]>([
  ['an operation that is gone', d => delete d.paths['/v1/people'].post, 'POST /v1/people is gone'],
  [
    'another operationId',
    d => (d.paths['/v1/people'].post.operationId = 'makePerson'),
    'operationId createPerson is now makePerson',
  ],
  ['a member of a response that is gone', d => delete d.components.schemas.Person.properties.email, '.email is gone'],
  [
    'a member of a response that may be absent',
    d =>
      (d.components.schemas.Person.required = d.components.schemas.Person.required.filter(
        (name: string) => name !== 'id',
      )),
    '.id may be absent now',
  ],
  [
    'a new type in a response',
    d => (d.components.schemas.Person.properties.version.type = ['integer', 'null']),
    'type integer is now integer,null',
  ],
  [
    'a member of a body that is gone',
    d => delete d.components.schemas.PersonBody.properties.first_name,
    '.first_name is gone',
  ],
  [
    'a new required member of a body',
    d => (d.components.schemas.PersonBody.required = ['email']),
    '.email is required now',
  ],
  [
    'a shorter text in a body',
    d => (d.components.schemas.PersonBody.properties.first_name.maxLength = 10),
    'maxLength is now 10',
  ],
  ['a required parameter', d => (d.components.parameters['listJobs-limit'].required = true), 'limit is required now'],
  [
    'a media type that is gone',
    d => delete d.paths['/v1/changes'].get.responses[200].content['application/x-ndjson'],
    'has no application/x-ndjson',
  ],
])('finds %s', (_, change, expected) => {
  expect(changesAfter(change)).toContainEqual(expect.stringContaining(expected))
})
