import { client, pagedQuery } from '../app/client.ts'

export const erasuresQuery = pagedQuery(['erasures'], at => client.erasures.list(at).page())
