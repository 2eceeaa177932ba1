import { useNavigate, useRouter, useRouterState } from '@tanstack/react-router'

/** Returns a function that navigates after a write, unless the person has left the page meanwhile. */
export function useNavigateAfter(): ReturnType<typeof useNavigate> {
  const router = useRouter()
  const navigate = useNavigate()
  const path = useRouterState({ select: ({ location }) => location.pathname })
  return async options => {
    if (router.state.location.pathname === path) await navigate(options)
  }
}
