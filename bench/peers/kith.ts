import type { Theatre } from '../run.ts'
import type { Peer, RunningPeer } from './peer.ts'

/** The same work for the service, sent and looked at by the same script as a peer's. */
export const requests: Peer['requests'] = {
  patch: {
    method: 'PATCH',
    target: '/v1/people/p@person',
    body: '{"first_name":"F@word","last_name":"L@word","language":"en","attribute_values":{"city":"c@word","score":@word}}',
    expected: '"data":true',
  },
  get: { method: 'GET', target: '/v1/people/p@person', expected: '"external_id":"p' },
}

/** The service as one more peer. It is stopped by whoever has started it. */
export function kithOf({ service: { address, token } }: Theatre): RunningPeer {
  return {
    address,
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    stop: async () => {},
  }
}
