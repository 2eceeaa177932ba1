import { useNavigate, useRouter, useRouterState } from '@tanstack/react-router'

/** A function that navigates after a write, unless its page was left while the write was on its way. */
export function useNavigateAfter(): ReturnType<typeof useNavigate> {
  const router = useRouter()
  const navigate = useNavigate()
  const path = useRouterState({ select: ({ location }) => location.pathname })
  return async options => {
    if (router.state.location.pathname === path) await navigate(options)
  }
}
