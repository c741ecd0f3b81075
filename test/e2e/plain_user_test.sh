#!/usr/bin/env bash
# The exploits of exploit_test.sh against a service of a plain user, whose steps have the service's own user: other walls hold there than
# where root starts it. Of root's suite only; a suite of another user runs them anyhow. `CAIRN_EXPLOITS=all` runs every one.
. "$(dirname "$0")/lib.sh"

test_walls_hold_where_steps_have_the_user_of_the_service_X3() {
    [ "$(id -u)" = 0 ] || skip 'exploit_test runs as this user'
    command -v setpriv >/dev/null || skip 'there is no setpriv'
    local cases=(a_step_cannot_change_the_service_X3 a_step_finds_no_unix_socket_of_its_service_X3 with_landlock_2_a_step_cannot_truncate_or_signal_X3
        secrets_of_the_service_are_no_secrets_of_documents_S1 a_link_or_a_pipe_in_place_of_an_artifact_is_none_X4 a_worker_confines_and_hides_its_token_S1)
    [ "${CAIRN_EXPLOITS:-}" != all ] || cases=()
    # The checkout may lie where the user may not look.
    mkdir -p here/test tmp
    cp -r "$e2e" here/test/e2e; cp "$CAIRN" here/cairn
    chmod 755 . here; chmod -R a+rX here; chmod 1777 tmp
    setpriv --reuid 65534 --regid 65534 --clear-groups env -i PATH="$PATH" HOME="$PWD/tmp" TMPDIR="$PWD/tmp" CAIRN="$PWD/here/cairn" \
        bash here/test/e2e/exploit_test.sh "${cases[@]}" >result 2>&1 </dev/null || fail "$(grep '^not ok' result | head -n 3)"
    ! grep '^not ok' result || fail "$(grep '^not ok' result | head -n 3)"
    [ "$(grep -c '^ok' result)" -ge $((${#cases[@]} > 0 ? ${#cases[@]} : 30)) ] || grep -q '^skip.*Landlock' result || fail "not all of them ran: $(cat result)"
}

run_tests "$@"
