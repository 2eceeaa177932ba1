import { createClient } from '@kith/client'

/** The client of the service that served this page. The session's cookie authenticates its requests. */
export const client = createClient({ url: location.origin, session: true, readYourWrites: true })
