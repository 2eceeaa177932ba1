import { randomBytes } from 'node:crypto'
import { type Peer, type RunningPeer, startProgram } from '../peer.ts'
import { fillParseClass } from '../people.ts'

const texts = ['id', 'first_name', 'last_name', 'email', 'mobile_prefix', 'mobile_number', 'date_of_birth', 'language']
const booleans = ['active', 'email_consent', 'sms_consent', 'push_notification_consent']
const fieldsOf = (type: string, names: string[]) => Object.fromEntries(names.map(name => [name, { type }]))
const fields = {
  ...fieldsOf('String', texts),
  ...fieldsOf('Boolean', booleans),
  ...fieldsOf('Number', ['version']),
  ...fieldsOf('Object', ['attributes']),
}

/** The external id is the object id, the key that Parse Server finds fastest. */
const target = '/parse/classes/people/p@person'

export const parse: Peer = {
  name: 'parse',
  packageName: 'parse-server',
  requests: {
    patch: {
      method: 'PUT',
      target,
      body: '{"first_name":"F@word","last_name":"L@word","language":"en","attributes":{"city":"c@word","score":@word}}',
      expected: '"updatedAt":',
    },
    get: { method: 'GET', target, expected: '"objectId":"p' },
  },
  start: async ({ folder, url, people }) => {
    const key = randomBytes(16).toString('hex')
    const program = await startProgram(folder, ['server.js'], { DATABASE_URL: url, MASTER_KEY: key })
    const headers = {
      'Content-Type': 'application/json',
      'X-Parse-Application-Id': 'bench',
      'X-Parse-Master-Key': key,
    }
    const running = { ...program, headers }
    try {
      await declareClass(running)
      await fillParseClass(url, people)
      return running
    } catch (error) {
      await program.stop()
      throw error
    }
  },
}

async function declareClass({ address, headers }: RunningPeer) {
  const body = JSON.stringify({ className: 'people', fields })
  const response = await fetch(`${address}/parse/schemas/people`, { method: 'POST', headers, body })
  if (!response.ok) throw new Error(`The class could not be declared: ${await response.text()}`)
}
