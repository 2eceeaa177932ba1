import { type Peer, type PeerSetup, startProgram } from '../peer.ts'
import { createPeople } from '../people.ts'

const person = `rowId externalId active version firstName lastName email mobilePrefix mobileNumber dateOfBirth language
  emailConsent smsConsent pushNotificationConsent attributes createdAt updatedAt`.replaceAll(/\s+/g, ' ')

const body = (query: string, variables: object) => JSON.stringify({ query, variables }).replaceAll('"@word"', '@word')

const patch = `mutation change($key: String!, $patch: PersonPatch!) {
  updatePersonByExternalId(input: { externalId: $key, personPatch: $patch }) { person { ${person} } } }`
const get = `query find($key: String!) { personByExternalId(externalId: $key) { ${person} } }`
const baseRequest = { method: 'POST', target: '/graphql', expected: '"externalId":"p' }

export const postgraphile: Peer = {
  name: 'postgraphile',
  packageName: 'postgraphile',
  requests: {
    patch: {
      ...baseRequest,
      body: body(patch, {
        key: 'p@person',
        patch: {
          firstName: 'F@word',
          lastName: 'L@word',
          language: 'en',
          attributes: { city: 'c@word', score: '@word' },
        },
      }),
    },
    get: { ...baseRequest, body: body(get, { key: 'p@person' }) },
  },
  start: place => start(place, { logged: false }),
}

/**
 * PostGraphile on a table whose triggers merge, count versions and log. On its own it replaces all attributes and logs
 * nothing.
 */
export const postgraphileLogged: Peer = {
  ...postgraphile,
  name: 'postgraphile_logged',
  pinnedBy: 'postgraphile',
  start: place => start(place, { logged: true }),
}

async function start({ folder, url, people }: PeerSetup, options: { logged: boolean }) {
  await createPeople(url, people, options)
  const program = await startProgram(folder, ['server.js'], { DATABASE_URL: url, GRAPHILE_ENV: 'production' })
  return { ...program, headers: { 'Content-Type': 'application/json' } }
}
