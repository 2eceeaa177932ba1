import { client } from '../app/client.ts'
import { pagedQuery } from '../app/paged-query.ts'

export const erasuresQuery = pagedQuery(['erasures'], at => client.erasures.list(at).page())
